# HYDRA_SANITIZE for every target, and what sanitizers need to live with LLVM's libraries, which are
# built without them.

if(HYDRA_SANITIZE)
  add_compile_options("-fsanitize=${HYDRA_SANITIZE}" -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${HYDRA_SANITIZE}")
  if(HYDRA_SANITIZE MATCHES "undefined")
    # A failure ends the program: a test must not pass with a report nobody reads.
    # vptr needs the type information of LLVM classes, some of which the library hides.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=vptr)
    add_link_options(-fno-sanitize=vptr)
  endif()
endif()

# LLVM's BumpPtrAllocator poisons its slabs when the code that inlines it is instrumented. Slabs are
# shared with the library's own copy, which never unpoisons them: false reports. Every executable
# with AddressSanitizer therefore carries this default.
add_library(HydraAsanOptions OBJECT "${CMAKE_CURRENT_LIST_DIR}/AsanOptions.cpp")

# Gives an executable that default, if the whole build or (ALWAYS) the executable uses the sanitizer.
function(hydra_add_asan_options target)
  cmake_parse_arguments(ARG "ALWAYS" "" "" ${ARGN})
  if(ARG_ALWAYS OR HYDRA_SANITIZE MATCHES "address")
    target_link_libraries(${target} PRIVATE HydraAsanOptions)
  endif()
endfunction()
