# How a program is declared.

# hydra_add_tool(name SOURCES file... LIBS library...)
# One executable in <build>/bin. Libraries of the project do not link MLIR or LLVM themselves: the
# program chooses, `MLIR LLVM` (shared, for development) in LIBS or the static archives it uses, and
# must never have both.
function(hydra_add_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS})
  hydra_add_asan_options(${name})
endfunction()
