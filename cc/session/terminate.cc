// Ends the process if an exception escapes, which no function of the C header
// lets happen. libstdc++'s own handler prints the name of the exception's type,
// for which it contains 57 KB of code that decodes names.
#if defined(__GLIBCXX__) || defined(__linux__)
#include <cstdlib>

namespace __gnu_cxx {  // NOLINT(bugprone-reserved-identifier)

// NOLINTNEXTLINE(bugprone-reserved-identifier, misc-use-internal-linkage)
void __verbose_terminate_handler() { std::abort(); }

}  // namespace __gnu_cxx
#endif
