# The target `package`: <build>/hydra.tar.xz with all programs but hydra-import and hydra-export, for x86-64 Linux machines with glibc 2.36
# or newer and nothing else installed. NVIDIA's libraries are looked up when a plan for a GPU needs them.

# lld knows all targets and Polly by name, for link-time optimisation, which nothing here asks it for: what is
# not ours gets empty functions, so that its code stays out.
set(portable_stubs "${PROJECT_BINARY_DIR}/portable/targets.c")
set(stubs "void _Z18getPollyPluginInfov(void) {}\n")
foreach(target IN LISTS LLVM_TARGETS_TO_BUILD)
  if(NOT target MATCHES "^(X86|NVPTX)$")
    foreach(part Target TargetInfo TargetMC AsmParser AsmPrinter)
      string(APPEND stubs "void LLVMInitialize${target}${part}(void) {}\n")
    endforeach()
  endif()
endforeach()
file(CONFIGURE OUTPUT "${portable_stubs}" CONTENT "${stubs}")
file(GLOB portable_archives "${LLVM_LIBRARY_DIR}/libMLIR*.a" "${LLVM_LIBRARY_DIR}/libLLVM*.a")
# The function is called from other folders as well.
set(HYDRA_PORTABLE_STUBS "${portable_stubs}" CACHE INTERNAL "")
set(HYDRA_PORTABLE_ARCHIVES "${portable_archives}" CACHE INTERNAL "")

# hydra_add_portable_tool(name)
# The program again as <name>-portable: its objects with the static archives of LLVM and MLIR, of which the linker
# takes the few members it needs.
function(hydra_add_portable_tool name)
  get_target_property(libraries ${name} LINK_LIBRARIES)
  list(REMOVE_ITEM libraries MLIR LLVM)
  add_executable(${name}-portable EXCLUDE_FROM_ALL "$<TARGET_OBJECTS:${name}>" "${HYDRA_PORTABLE_STUBS}")
  target_link_libraries(${name}-portable PRIVATE
    ${libraries} -Wl,--start-group ${HYDRA_PORTABLE_ARCHIVES} -Wl,--end-group
    ZLIB::ZLIB zstd::libzstd_shared ${CMAKE_DL_LIBS})
  target_link_options(${name}-portable PRIVATE -Wl,--gc-sections)
endfunction()

add_custom_target(portable)
foreach(tool hydrac hydra-opt hydra-interpret hydra-lsp)
  hydra_add_portable_tool(${tool})
  add_dependencies(portable ${tool}-portable)
endforeach()
add_custom_target(package
  COMMAND "${PROJECT_SOURCE_DIR}/tools/package.sh" "${PROJECT_BINARY_DIR}"
  DEPENDS portable hydra-bench hydra-data hydra-run hydra-gloo hydra-inspect hydra-tokenize
  USES_TERMINAL)
