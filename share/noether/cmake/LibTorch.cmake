# LibTorch's CPU library, from LIBTORCH or Torch_DIR (environment or -D) or from .deps/, where `make deps` puts it.
# TorchConfig.cmake is not used: the published packages' one insists on a CUDA installation.

set(candidates ${LIBTORCH} $ENV{LIBTORCH})
foreach(folder ${Torch_DIR} $ENV{Torch_DIR})
  cmake_path(GET folder PARENT_PATH share) # Torch_DIR is PREFIX/share/cmake/Torch
  cmake_path(GET share PARENT_PATH share)
  cmake_path(GET share PARENT_PATH prefix)
  list(APPEND candidates ${prefix})
endforeach()
list(APPEND candidates ${CMAKE_SOURCE_DIR}/.deps/libtorch/torch)

find_path(NOETHER_TORCH_ROOT include/ATen/ATen.h PATHS ${candidates} NO_DEFAULT_PATH)
if(NOT NOETHER_TORCH_ROOT)
  message(FATAL_ERROR "LibTorch was not found in: ${candidates}. Run `make deps`, or set LIBTORCH to its folder.")
endif()
file(READ ${NOETHER_TORCH_ROOT}/include/torch/headeronly/version.h version_text)
string(REGEX MATCH "TORCH_VERSION_MAJOR ([0-9]+)" _ "${version_text}")
set(major ${CMAKE_MATCH_1})
string(REGEX MATCH "TORCH_VERSION_MINOR ([0-9]+)" _ "${version_text}")
message(STATUS "LibTorch ${major}.${CMAKE_MATCH_1} in ${NOETHER_TORCH_ROOT}")

# Its include folder carries its own fmt, without the library. A folder that is searched first puts ours in its place, so that
# there is one fmt in the program.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/fmt-first)
get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
find_path(fmt_home fmt/format.h HINTS ${fmt_include})
file(CREATE_LINK ${fmt_home}/fmt ${CMAKE_BINARY_DIR}/fmt-first/fmt SYMBOLIC)

foreach(name torch_cpu c10)
  add_library(noether_${name} SHARED IMPORTED)
  set_target_properties(noether_${name} PROPERTIES
    IMPORTED_LOCATION ${NOETHER_TORCH_ROOT}/lib/lib${name}.so IMPORTED_SONAME lib${name}.so)
endforeach()
add_library(noether_libtorch INTERFACE)
target_include_directories(noether_libtorch INTERFACE ${CMAKE_BINARY_DIR}/fmt-first)
target_include_directories(noether_libtorch SYSTEM INTERFACE
  ${NOETHER_TORCH_ROOT}/include ${NOETHER_TORCH_ROOT}/include/torch/csrc/api/include)
target_link_libraries(noether_libtorch INTERFACE noether_torch_cpu noether_c10)
# The libraries that libtorch_cpu.so itself needs are found at run time by its own path; with the older kind of run path, ours
# serves them too.
target_link_options(noether_libtorch INTERFACE -Wl,--allow-shlib-undefined -Wl,--disable-new-dtags)

# Where the libraries that belong to it lie, as regular expressions: its own folder, and those of the packages unpacked beside it.
# The folder as it was named, and as it is: a link may lie between.
set(NOETHER_TORCH_HOMES "")
cmake_path(GET NOETHER_TORCH_ROOT PARENT_PATH named)
file(REAL_PATH ${named} real)
foreach(folder ${named} ${real})
  string(REGEX REPLACE "([][+.*()^$?|\\\\])" "\\\\\\1" folder ${folder})
  list(APPEND NOETHER_TORCH_HOMES "^${folder}/")
endforeach()

# Its main header takes nine seconds a source file; compiled once, in nineteen, it takes one and a half. custom_function.h, which one
# source needs, stays out: it would double what each of the others pays.
file(WRITE ${CMAKE_BINARY_DIR}/torch_headers.cpp "")
add_library(noether_torch_headers OBJECT ${CMAKE_BINARY_DIR}/torch_headers.cpp)
target_link_libraries(noether_torch_headers PUBLIC noether_base noether_libtorch)
target_precompile_headers(noether_torch_headers PRIVATE <ATen/ATen.h>)
# So that ccache can tell what a precompiled header was made of.
target_compile_options(noether_libtorch INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
