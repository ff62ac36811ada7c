# Writes the commit of a source tree into a header, if it has changed: cmake -DSOURCE=<tree> -DHEADER=<file> -P this
execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=10
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(commit STREQUAL "")
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT "${HEADER}" CONTENT "#define KOMVOS_COMMIT \"${commit}\"\n" @ONLY)
