#ifndef EXITWATCH_NAPI_DESCRIPTIONS_H_
#define EXITWATCH_NAPI_DESCRIPTIONS_H_

#include <napi.h>

#include "linux/reader/exit_reader.h"

namespace exitwatch {

// A reader's reports about itself, as declared in src/native/addon.ts: NativeRefusal, NativeTrial
// and NativeStats.
Napi::Value DescribeRefusal(Napi::Env env, const BpfRefusal& refusal);
Napi::Value DescribeTrial(Napi::Env env, const TraceTrial& trial);
Napi::Value DescribeStats(Napi::Env env, ExitReader& reader);

}  // namespace exitwatch

#endif  // EXITWATCH_NAPI_DESCRIPTIONS_H_
