# Compiles through ccache where there is one, precompiled headers included.

find_program(HYDRA_CCACHE ccache)
mark_as_advanced(HYDRA_CCACHE)
if(HYDRA_CCACHE)
  # A file that uses a precompiled header is cached only with this sloppiness.
  set(launcher "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      "${HYDRA_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Without the time stamp inside, a rebuilt header that is equal hits the cache.
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endif()
