#ifndef EXITWATCH_TEST_LINUX_TESTS_H_
#define EXITWATCH_TEST_LINUX_TESTS_H_

namespace exitwatch::test {

void OwnChildrenTests();
void SilenceDetectorTests();

}  // namespace exitwatch::test

#endif  // EXITWATCH_TEST_LINUX_TESTS_H_
