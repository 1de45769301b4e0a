#include "napi/descriptions.h"

#include <cstring>
#include <optional>

namespace exitwatch {

namespace {

constexpr double kNsPerMs = 1e6;

}  // namespace

Napi::Value DescribeRefusal(Napi::Env env, const BpfRefusal& refusal) {
  Napi::Object description = Napi::Object::New(env);
  description.Set("refusal", Napi::Number::New(env, static_cast<int>(refusal.reason)));
  description.Set("errno", Napi::Number::New(env, refusal.number));
  description.Set("detail", Napi::String::New(env, refusal.detail));
  return description;
}

Napi::Value DescribeTrial(Napi::Env env, const TraceTrial& trial) {
  Napi::Object description = Napi::Object::New(env);
  const auto set = [&](const char* name, double value) {
    description.Set(name, Napi::Number::New(env, value));
  };
  set("errno", trial.error ? trial.error.number : 0);
  description.Set("syscall", Napi::String::New(env, trial.error.syscall));
  set("pid", trial.child.pid);
  set("startTicks", static_cast<double>(trial.child.start_ticks));
  set("inode", static_cast<double>(trial.child.inode));
  set("senderThread", trial.sender_thread);
  set("senderUid", trial.sender_uid);
  set("senderParent", trial.sender.parent_pid);
  description.Set("senderName", Napi::String::New(env, trial.sender.name));
  const size_t bytes = trial.records.size() * sizeof(SignalRecord);
  Napi::ArrayBuffer records = Napi::ArrayBuffer::New(env, bytes);
  if (bytes != 0) std::memcpy(records.Data(), trial.records.data(), bytes);
  description.Set("records", records);
  return description;
}

Napi::Value DescribeStats(Napi::Env env, ExitReader& reader) {
  const RecordQueue::Counts counts = reader.queue().counts();
  const auto set = [&](Napi::Object object, const char* name, double value) {
    object.Set(name, Napi::Number::New(env, value));
  };
  Napi::Object stats = Napi::Object::New(env);
  set(stats, "received", static_cast<double>(counts.received));
  set(stats, "delivered", static_cast<double>(counts.delivered));
  set(stats, "lost", static_cast<double>(counts.lost));
  set(stats, "gaps", static_cast<double>(counts.gaps));
  set(stats, "queueDepth", static_cast<double>(counts.depth));
  set(stats, "lastEventMs", counts.last_event_ms);
  set(stats, "rejected", static_cast<double>(reader.rejected()));
  set(stats, "withoutPidfd", static_cast<double>(reader.watched().without_pidfd()));
  set(stats, "wakeups", static_cast<double>(reader.wakeups()));
  if (const std::optional<uint64_t> age_ns = reader.NsSinceProof()) {
    set(stats, "canaryAgeMs", static_cast<double>(*age_ns) / kNsPerMs);
  }
  return stats;
}

}  // namespace exitwatch
