// A minimal test framework for the tests in this folder.
#ifndef TF_LSTM_OPS_TESTS_CORE_HARNESS_H_
#define TF_LSTM_OPS_TESTS_CORE_HARNESS_H_

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>

inline std::map<std::string, void (*)()>& Tests() {
  static std::map<std::string, void (*)()> tests;
  return tests;
}

// Usage: TEST(Name) { CHECK(condition); }
#define TEST(name)                           \
  static void name();                        \
  static const bool registered_##name = [] { \
    Tests()[#name] = &name;                  \
    return true;                             \
  }();                                       \
  static void name()

#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                       \
    }                                                                     \
  } while (false)

#define CHECK_EQ(a, b)                                                    \
  do {                                                                    \
    const auto& a_value = (a);                                            \
    const auto& b_value = (b);                                            \
    if (!(a_value == b_value)) {                                          \
      std::ostringstream text;                                            \
      text << #a << " is " << a_value << ", " << #b << " is " << b_value; \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, text.str().c_str()); \
      std::exit(1);                                                       \
    }                                                                     \
  } while (false)

// Runs the test that the first argument names.
inline int RunTest(int argc, char** argv) {
  const auto found = argc == 2 ? Tests().find(argv[1]) : Tests().end();
  if (found == Tests().end()) {
    std::printf("usage: %s TEST\n", argv[0]);
    return 2;
  }
  found->second();
  std::printf("passed\n");
  return 0;
}

#endif  // TF_LSTM_OPS_TESTS_CORE_HARNESS_H_
