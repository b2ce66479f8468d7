# How every target of this project is compiled.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Linked by every target of our own and passed on to no user of an installed one.
add_library(rapt_warnings INTERFACE)
# clang counts the conversions between signed and unsigned among -Wconversion, g++ does not.
target_compile_options(rapt_warnings INTERFACE
  -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror)

# Paths below the project are cached relative to it, so that other clones share the cache.
find_program(RAPT_CCACHE ccache)
if(RAPT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${RAPT_CCACHE})
endif()

# Highway compiles each kernel for several targets and picks one at run time. SSSE3 (1 << 12) adds
# nothing to SSE4; the sanitizers leave SSE4 (1 << 11) to the release build as well.
set(rapt_disabled_targets 0x1000)
if(RAPT_SANITIZE)
  set(rapt_disabled_targets 0x1800)
  # They belong to the whole build, so that the standard library's inline code is checked too.
  # g++ warns of uninitialised values and overlong copies that the instrumentation makes up.
  add_compile_options(-fsanitize=${RAPT_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>)
  add_link_options(-fsanitize=${RAPT_SANITIZE})
endif()
