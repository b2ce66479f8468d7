# Libraries that Rapt stands on; all are Debian 12 packages (see `./run`).
find_package(Threads REQUIRED)
find_package(hwy REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PNG REQUIRED)
find_package(Freetype REQUIRED)
find_package(yaml-cpp REQUIRED)

# oneDNN and libgomp are linked by name. oneDNN's own package file wants OpenCL's development files,
# which nothing here uses. libgomp is there for omp_set_num_threads alone, since Debian's oneDNN is
# built with OpenMP: nothing of ours is compiled with -fopenmp.
find_library(RAPT_DNNL dnnl REQUIRED)
find_path(RAPT_DNNL_HEADERS oneapi/dnnl/dnnl.hpp REQUIRED)
mark_as_advanced(RAPT_DNNL RAPT_DNNL_HEADERS)

# Linked by name too: their Debian packages bring no files for CMake.
find_library(RAPT_UTF8PROC utf8proc REQUIRED)
find_library(RAPT_ZLIB z REQUIRED)
find_library(RAPT_SENTENCEPIECE sentencepiece REQUIRED)
find_path(RAPT_SENTENCEPIECE_HEADERS sentencepiece_trainer.h REQUIRED)
mark_as_advanced(RAPT_UTF8PROC RAPT_ZLIB RAPT_SENTENCEPIECE RAPT_SENTENCEPIECE_HEADERS)
