# Libraries that Rapt stands on; all are Debian 12 packages (see `./run`).
find_package(Threads REQUIRED)
find_package(dnnl REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PNG REQUIRED)
find_package(Freetype REQUIRED)
find_library(RAPT_HWY hwy REQUIRED)
# oneDNN is built with OpenMP. Its runtime is linked by name, for omp_set_num_threads alone: nothing
# of ours is compiled with -fopenmp.
find_library(RAPT_GOMP NAMES gomp libgomp.so.1 PATH_SUFFIXES gcc/${CMAKE_LIBRARY_ARCHITECTURE}/12)
if(NOT RAPT_GOMP)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libgomp.so OUTPUT_VARIABLE RAPT_GOMP OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
set(rapt_private_libraries DNNL::dnnl fmt::fmt $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> PNG::PNG Freetype::Freetype ${RAPT_HWY} ${RAPT_GOMP})
