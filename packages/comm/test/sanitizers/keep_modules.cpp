// Keeps plug-ins loaded until the process ends, for the leak sanitizer: Open MPI closes its own in MPI_Finalize, and
// what their variables point to would look like a leak, in a module without a name. It takes the place of the C
// library's function.
extern "C" int dlclose(void*) { return 0; }
