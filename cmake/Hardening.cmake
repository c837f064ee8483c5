# What compilers and linkers do against mistakes that become attacks, in what users run. Each is used where the
# compiler has it; tests/e2e/test_hardening.py reads the files of a build. Sanitizers have checks of their own.
include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)

check_pie_supported(LANGUAGES C CXX)

if(NOT NEREID_SANITIZE)
  foreach(flag IN ITEMS -fstack-protector-strong -fstack-clash-protection -fcf-protection=return)
    string(MAKE_C_IDENTIFIER "NEREID_HAS${flag}" known)
    check_cxx_compiler_flag(${flag} ${known})
    if(${known})
      add_compile_options("$<$<CONFIG:Release>:${flag}>")
    endif()
  endforeach()
  # Needs an optimiser, and may be set by the distribution's compiler already.
  add_compile_options("$<$<CONFIG:Release>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>")
  foreach(flag IN ITEMS -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,separate-code)
    string(MAKE_C_IDENTIFIER "NEREID_HAS${flag}" known)
    check_linker_flag(CXX ${flag} ${known})
    if(${known})
      add_link_options("$<$<CONFIG:Release>:${flag}>")
    endif()
  endforeach()
endif()
