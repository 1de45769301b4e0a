#ifndef EXITWATCH_NAPI_VALUES_H_
#define EXITWATCH_NAPI_VALUES_H_

#include <napi.h>

#include <cstdint>

#include "linux/system/system_error.h"

namespace exitwatch {

// Throws an Error with `failure`, `errno` and `syscall`. TypeScript writes the message.
inline Napi::Value ThrowSystemError(Napi::Env env, const SystemError& error) {
  Napi::Error thrown = Napi::Error::New(env, error.syscall);
  thrown.Set("failure", Napi::Number::New(env, static_cast<int>(error.code)));
  thrown.Set("errno", Napi::Number::New(env, error.number));
  thrown.Set("syscall", Napi::String::New(env, error.syscall));
  thrown.ThrowAsJavaScriptException();
  return env.Undefined();
}

// For ticks and inodes: integers below 2^53.
inline uint64_t ToUint64(const Napi::Value& value) {
  const int64_t number = value.ToNumber().Int64Value();
  return number > 0 ? static_cast<uint64_t>(number) : 0;
}

}  // namespace exitwatch

#endif  // EXITWATCH_NAPI_VALUES_H_
