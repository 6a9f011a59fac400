// Runs one of the tests that are linked with it.
#include "harness.h"

int main(int argc, char** argv) { return RunTest(argc, argv); }
