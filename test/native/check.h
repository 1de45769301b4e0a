#ifndef EXITWATCH_TEST_CHECK_H_
#define EXITWATCH_TEST_CHECK_H_

#include <cstdio>

namespace exitwatch::test {

inline int failures = 0;

template <typename Actual, typename Expected>
void CheckEqual(const Actual& actual, const Expected& expected, const char* what, const char* file,
                int line) {
  if (actual == expected) return;
  failures++;
  std::printf("%s:%d: %s: %lld instead of %lld\n", file, line, what, static_cast<long long>(actual),
              static_cast<long long>(expected));
}

}  // namespace exitwatch::test

// Both are numbers or booleans.
#define CHECK_EQUAL(actual, expected) \
  ::exitwatch::test::CheckEqual(actual, expected, #actual, __FILE__, __LINE__)

#define CHECK(condition) CHECK_EQUAL(static_cast<bool>(condition), true)

#endif  // EXITWATCH_TEST_CHECK_H_
