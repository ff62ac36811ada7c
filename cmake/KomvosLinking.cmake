# Trilinos' targets name every library of Trilinos. An executable that loads only those it uses starts faster: most of
# the start is looking symbols up in all that are loaded.
include(CheckLinkerFlag)
check_linker_flag(CXX "LINKER:--as-needed" Komvos_LINKER_AS_NEEDED)
if(Komvos_LINKER_AS_NEEDED)
  add_link_options("LINKER:--as-needed")
endif()
