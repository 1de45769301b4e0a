// One idea: each method converts the arguments of one call of Recorder, and its result.
#include "napi/recorder_object.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "abi/record.h"
#include "linux/bpf/trace_trial.h"
#include "linux/recorder/recorded_exit.h"
#include "linux/recorder/recorder_trial.h"
#include "linux/system/own_children.h"
#include "napi/descriptions.h"
#include "napi/exit_reader_object.h"
#include "napi/values.h"

namespace exitwatch {

namespace {

const napi_type_tag kTypeTag = {0x9b3f6d0c8e1f4a57, 0xb1d2a9e47c05386f};

// What a process is called that is watched.
RecorderKey KeyFrom(const Recorder& recorder, const Napi::CallbackInfo& info) {
  return recorder.KeyOf(info[0].ToNumber().Int32Value(), ToUint64(info[1]), ToUint64(info[2]));
}

template <size_t kBytes>
void CopyText(const Napi::Value& value, char (&text)[kBytes]) {
  const std::string from = value.ToString();
  std::memcpy(text, from.data(), std::min(from.size(), kBytes - 1));
}

}  // namespace

Napi::Function RecorderObject::Define(Napi::Env env) {
  return DefineClass(env, "Recorder",
                     {
                         InstanceMethod<&RecorderObject::Create>("create"),
                         InstanceMethod<&RecorderObject::Trial>("trial"),
                         InstanceMethod<&RecorderObject::Trust>("trust"),
                         InstanceMethod<&RecorderObject::Inherit>("inherit"),
                         InstanceMethod<&RecorderObject::Pin>("pin"),
                         InstanceMethod<&RecorderObject::Parts>("parts"),
                         InstanceMethod<&RecorderObject::Adopt>("adopt"),
                         InstanceMethod<&RecorderObject::Open>("open"),
                         InstanceMethod<&RecorderObject::About>("about"),
                         InstanceMethod<&RecorderObject::Watch>("watch"),
                         InstanceMethod<&RecorderObject::Forget>("forget"),
                         InstanceMethod<&RecorderObject::Watched>("watched"),
                         InstanceMethod<&RecorderObject::Retain>("retain"),
                         InstanceMethod<&RecorderObject::Find>("find"),
                         InstanceMethod<&RecorderObject::ReadRing>("readRing"),
                         InstanceMethod<&RecorderObject::ReadSignals>("readSignals"),
                         InstanceMethod<&RecorderObject::RingEnd>("ringEnd"),
                         InstanceMethod<&RecorderObject::Delivered>("delivered"),
                         InstanceMethod<&RecorderObject::SetDelivered>("setDelivered"),
                         InstanceMethod<&RecorderObject::CommitRing>("commitRing"),
                         InstanceMethod<&RecorderObject::CommitSignals>("commitSignals"),
                         InstanceMethod<&RecorderObject::Used>("used"),
                         InstanceMethod<&RecorderObject::Losses>("losses"),
                         InstanceMethod<&RecorderObject::AcknowledgeLoss>("acknowledgeLoss"),
                         InstanceMethod<&RecorderObject::Lease>("lease"),
                         InstanceMethod<&RecorderObject::SetLease>("setLease"),
                         InstanceMethod<&RecorderObject::CgroupPath>("cgroupPath"),
                         InstanceMethod<&RecorderObject::Programs>("programs"),
                         InstanceMethod<&RecorderObject::Close>("close"),
                     });
}

RecorderObject::RecorderObject(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  info.This().As<Napi::Object>().TypeTag(&kTypeTag);
  recorder_ = std::make_unique<Recorder>(cgroups_);
}

bool RecorderObject::IsOpen(const Napi::CallbackInfo& info) {
  if (info.This().As<Napi::Object>().CheckTypeTag(&kTypeTag) && recorder_) return true;
  Napi::TypeError::New(info.Env(), "not an open Recorder").ThrowAsJavaScriptException();
  return false;
}

// create({slots, ringBytes, signalBytes, owner, version, stateDir}): why it could not be.
Napi::Value RecorderObject::Create(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOpen(info)) return env.Undefined();
  const Napi::Object options = info[0].ToObject();
  RecorderAbout about = {};
  about.slots = options.Get("slots").ToNumber().Uint32Value();
  about.ring_bytes = ToUint64(options.Get("ringBytes"));
  about.signal_bytes = ToUint64(options.Get("signalBytes"));
  about.owner = options.Get("owner").ToNumber().Uint32Value();
  CopyText(options.Get("version"), about.version);
  CopyText(options.Get("stateDir"), about.state_dir);
  const SharedByReaders& shared = *env.GetInstanceData<SharedByReaders>();
  return DescribeRefusal(env, recorder_->Create(shared->types, about));
}

Napi::Value RecorderObject::Trial(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  clock_.Sample();
  return DescribeTrial(info.Env(), TryRecorder(*recorder_, clock_));
}

Napi::Value RecorderObject::Trust(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  const SystemError error = recorder_->Trust();
  return error ? ThrowSystemError(info.Env(), error) : info.Env().Undefined();
}

Napi::Value RecorderObject::Pin(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  const SystemError error = recorder_->Pin(info[0].ToString());
  return error ? ThrowSystemError(info.Env(), error) : info.Env().Undefined();
}

// parts(): the name and the descriptor of each.
Napi::Value RecorderObject::Parts(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOpen(info)) return env.Undefined();
  Napi::Array parts = Napi::Array::New(env);
  for (const Recorder::Part& part : recorder_->Parts()) {
    Napi::Object described = Napi::Object::New(env);
    described.Set("name", Napi::String::New(env, part.name));
    described.Set("fd", Napi::Number::New(env, part.fd));
    parts.Set(parts.Length(), described);
  }
  return parts;
}

// adopt(parts): opens it from copies of these descriptors; the result is that of open().
Napi::Value RecorderObject::Adopt(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  std::map<std::string, int> parts;
  const auto array = info[0].As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); i++) {
    const Napi::Object part = array.Get(i).ToObject();
    parts[part.Get("name").ToString()] = part.Get("fd").ToNumber().Int32Value();
  }
  const SystemError error = recorder_->OpenParts([&](const std::string& name) {
    const auto found = parts.find(name);
    if (found == parts.end()) {
      errno = ENOENT;
      return UniqueFd();
    }
    return UniqueFd(fcntl(found->second, F_DUPFD_CLOEXEC, 0));
  });
  return Napi::Number::New(info.Env(), error.number);
}

// open(folder): 0, or the errno for which its parts cannot be used; then about() may still answer.
Napi::Value RecorderObject::Open(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), recorder_->OpenPinned(info[0].ToString()).number);
}

// Undefined if it is none.
Napi::Value RecorderObject::About(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOpen(info)) return env.Undefined();
  const RecorderAbout& about = recorder_->about();
  if (about.magic != RecorderAbout::kMagic) return env.Undefined();
  Napi::Object result = Napi::Object::New(env);
  const auto set = [&](const char* name, double value) {
    result.Set(name, Napi::Number::New(env, value));
  };
  set("layout", about.layout);
  set("slots", about.slots);
  set("ringBytes", static_cast<double>(about.ring_bytes));
  set("signalBytes", static_cast<double>(about.signal_bytes));
  set("sinceNs", static_cast<double>(about.since_ns));
  set("owner", about.owner);
  result.Set("isRecording", Napi::Boolean::New(env, recorder_->IsRecording()));
  result.Set("hasInodes", Napi::Boolean::New(env, about.has_inodes != 0));
  result.Set("isTrusted", Napi::Boolean::New(env, about.is_trusted != 0));
  result.Set("version", Napi::String::New(env, about.version));
  result.Set("stateDir", Napi::String::New(env, about.state_dir));
  return result;
}

// inherit(other): watches what the other recorder watches.
Napi::Value RecorderObject::Inherit(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  const Napi::Object object = info[0].ToObject();
  if (!object.CheckTypeTag(&kTypeTag)) return info.Env().Undefined();
  const RecorderObject* other = Unwrap(object);
  if (!other->recorder_) return info.Env().Undefined();
  for (const RecorderKey& key : other->recorder_->Watched()) recorder_->Watch(key);
  return info.Env().Undefined();
}

// watch(pid, startTicks, inode): 0, or an errno: E2BIG if there is no slot left.
Napi::Value RecorderObject::Watch(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  const bool is_added = recorder_->Watch(KeyFrom(*recorder_, info));
  return Napi::Number::New(info.Env(), is_added || errno == EEXIST ? 0 : errno);
}

Napi::Value RecorderObject::Forget(const Napi::CallbackInfo& info) {
  if (IsOpen(info)) recorder_->Forget(KeyFrom(*recorder_, info));
  return info.Env().Undefined();
}

// How many processes are watched.
Napi::Value RecorderObject::Watched(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), static_cast<double>(recorder_->Watched().size()));
}

// retain(identities): three numbers for each: pid, startTicks, inode.
Napi::Value RecorderObject::Retain(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  const auto identities = info[0].As<Napi::Float64Array>();
  std::vector<RecorderKey> keys;
  for (size_t i = 0; i + 2 < identities.ElementLength(); i += 3) {
    keys.push_back(recorder_->KeyOf(static_cast<int32_t>(identities[i]),
                                    static_cast<uint64_t>(identities[i + 1]),
                                    static_cast<uint64_t>(identities[i + 2])));
  }
  recorder_->Retain(keys);
  return info.Env().Undefined();
}

// find(pid, startTicks, inode, batch, signals): how many signals it has put there, and the exit at
// the beginning of `batch`; undefined if there is none.
Napi::Value RecorderObject::Find(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOpen(info)) return env.Undefined();
  const RecorderKey key = KeyFrom(*recorder_, info);
  RecordedExit exit;
  uint64_t since_ns = 0;
  if (!recorder_->Find(key, &exit, &since_ns)) return env.Undefined();
  clock_.Sample();
  const ExitRecord record = MakeExitRecord(exit, since_ns, clock_, TaiOffset());
  std::memcpy(info[3].As<Napi::ArrayBuffer>().Data(), &record, sizeof(record));
  auto batch = info[4].As<Napi::ArrayBuffer>();
  auto* place = static_cast<SignalRecord*>(batch.Data());
  size_t count = 0;
  for (SignalRecord& signal : recorder_->SignalsOf(key)) {
    if (count == batch.ByteLength() / sizeof(SignalRecord)) break;
    victims_.OnRecord(&signal);
    place[count++] = ForJavaScript(signal, clock_);
  }
  return Napi::Number::New(env, static_cast<double>(count));
}

Napi::Value RecorderObject::ReadRing(const Napi::CallbackInfo& info) { return Read(info, true); }

Napi::Value RecorderObject::ReadSignals(const Napi::CallbackInfo& info) {
  return Read(info, false);
}

// readRing(batch, signals, ends): what comes next, in its order; `ends` has for each what to commit
// then, negative for a signal. Fewer than there is room for: that was all.
Napi::Value RecorderObject::Read(const Napi::CallbackInfo& info, bool is_ring) {
  const Napi::Env env = info.Env();
  if (!IsOpen(info)) return env.Undefined();
  auto* exits = static_cast<uint8_t*>(info[0].As<Napi::ArrayBuffer>().Data());
  auto signals = info[1].As<Napi::ArrayBuffer>();
  auto* signal_place = static_cast<SignalRecord*>(signals.Data());
  auto* ends = static_cast<double*>(info[2].As<Napi::ArrayBuffer>().Data());
  size_t room = std::min(signals.ByteLength() / sizeof(SignalRecord),
                         info[2].As<Napi::ArrayBuffer>().ByteLength() / sizeof(double));
  if (is_ring) {
    if (recorder_->about().ring_bytes == 0) room = 0;
    room = std::min(room, info[0].As<Napi::ArrayBuffer>().ByteLength() / kRecordBytes);
  }
  has_read_ = true;
  clock_.Sample();
  const uint64_t since_ns = recorder_->about().since_ns;
  const int64_t tai_offset_ns = TaiOffset();
  size_t count = 0;
  const auto visit = [&](const RecordedExit* exit, const SignalRecord* signal, uint64_t end) {
    if (exit != nullptr) {
      if (!is_ring) return;  // somebody else's ring
      const GroupRecord& group = exit->group;
      const uint64_t start_ticks = clock_.TickOfStart(group.start_ns);
      const GroupIdentity who = {group.pid, start_ticks, group.inode, 0, group.start_ns};
      if (OwnChildren::Contains(who, group.time_ns)) return;
      const ExitRecord record = MakeExitRecord(*exit, since_ns, clock_, tai_offset_ns);
      std::memcpy(exits, &record, sizeof(record));
      exits += kRecordBytes;
      ends[count++] = static_cast<double>(end);
    } else {
      SignalRecord seen = *signal;
      victims_.OnRecord(&seen);
      *signal_place++ = ForJavaScript(seen, clock_);
      ends[count++] = -static_cast<double>(end);
    }
  };
  // Some records are the paths of cgroups, which we keep.
  for (bool is_at_end = false; !is_at_end && count < room;) {
    const size_t left = room - count;
    is_at_end = is_ring ? recorder_->ReadRing(left, visit) : recorder_->ReadSignals(left, visit);
  }
  return Napi::Number::New(env, static_cast<double>(count));
}

Napi::Value RecorderObject::RingEnd(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), static_cast<double>(recorder_->RingEnd()));
}

Napi::Value RecorderObject::Delivered(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), static_cast<double>(recorder_->Delivered()));
}

Napi::Value RecorderObject::SetDelivered(const Napi::CallbackInfo& info) {
  if (IsOpen(info)) recorder_->SetDelivered(ToUint64(info[0]));
  return info.Env().Undefined();
}

Napi::Value RecorderObject::CommitRing(const Napi::CallbackInfo& info) {
  if (IsOpen(info)) recorder_->CommitRing(ToUint64(info[0]));
  return info.Env().Undefined();
}

Napi::Value RecorderObject::CommitSignals(const Napi::CallbackInfo& info) {
  if (IsOpen(info)) recorder_->CommitSignals(ToUint64(info[0]));
  return info.Env().Undefined();
}

Napi::Value RecorderObject::Used(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOpen(info)) return env.Undefined();
  Napi::Object used = Napi::Object::New(env);
  used.Set("ring", Napi::Number::New(env, static_cast<double>(recorder_->RingUsed())));
  used.Set("signals", Napi::Number::New(env, static_cast<double>(recorder_->SignalsUsed())));
  return used;
}

// losses(): of exits, of signals and of watched processes.
Napi::Value RecorderObject::Losses(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOpen(info)) return env.Undefined();
  Napi::Object result = Napi::Object::New(env);
  struct Kind {
    const char* name;
    size_t offset;
  };
  clock_.Sample();
  recorder_->CountMisses(clock_.BootNow());
  // To CLOCK_REALTIME.
  const auto clock_ms = [&](uint64_t boot_ns) {
    const double age_ns = static_cast<double>(clock_.BootNow()) - static_cast<double>(boot_ns);
    const double now_ns =
        static_cast<double>(clock_.Now()) + static_cast<double>(clock_.realtime_offset_ns());
    return (now_ns - age_ns) / 1e6;
  };
  const Kind kinds[] = {{"exits", offsetof(RecorderState, exits)},
                        {"signals", offsetof(RecorderState, signals)},
                        {"watched", offsetof(RecorderState, watched)}};
  for (const auto& [name, offset] : kinds) {
    const RecorderLoss loss = recorder_->Loss(offset);
    Napi::Object described = Napi::Object::New(env);
    const auto set = [&, &target = described](const char* field, double value) {
      target.Set(field, Napi::Number::New(env, value));
    };
    set("count", static_cast<double>(loss.count - loss.reported));
    set("firstMs", loss.first_ns == 0 ? 0 : clock_ms(loss.first_ns));
    set("lastMs", loss.last_ns == 0 ? 0 : clock_ms(loss.last_ns));
    result.Set(name, described);
  }
  return result;
}

// acknowledgeLoss(count): so many lost exits were reported.
Napi::Value RecorderObject::AcknowledgeLoss(const Napi::CallbackInfo& info) {
  if (IsOpen(info)) {
    recorder_->AcknowledgeLoss(offsetof(RecorderState, exits), ToUint64(info[0]));
  }
  return info.Env().Undefined();
}

// How long, in ms, the programs go on without a reader; negative if they have stopped.
Napi::Value RecorderObject::Lease(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  const double left_ns =
      static_cast<double>(recorder_->lease_ns()) - static_cast<double>(clock_.BootNow());
  return Napi::Number::New(info.Env(), left_ns / 1e6);
}

Napi::Value RecorderObject::SetLease(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  recorder_->SetLease(clock_.BootNow() + ToUint64(info[0]) * 1'000'000);
  return info.Env().Undefined();
}

// cgroupPath(id): see ExitReaderObject::CgroupPath().
Napi::Value RecorderObject::CgroupPath(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOpen(info)) return env.Undefined();
  bool is_shortage = false;
  const std::optional<std::string> path = cgroups_.Find(ToUint64(info[0]), &is_shortage);
  if (path) return Napi::String::New(env, *path);
  return is_shortage ? env.Null() : env.Undefined();
}

Napi::Value RecorderObject::Programs(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!IsOpen(info)) return env.Undefined();
  Napi::Array programs = Napi::Array::New(env);
  for (const Recorder::Program& program : recorder_->Programs()) {
    Napi::Object described = Napi::Object::New(env);
    described.Set("name", Napi::String::New(env, program.name));
    described.Set("id", Napi::Number::New(env, program.info.id));
    described.Set("runs", Napi::Number::New(env, static_cast<double>(program.info.run_count)));
    described.Set("runNs", Napi::Number::New(env, static_cast<double>(program.info.run_ns)));
    described.Set("misses", Napi::Number::New(env, static_cast<double>(program.info.misses)));
    programs.Set(programs.Length(), described);
  }
  return programs;
}

Napi::Value RecorderObject::Close(const Napi::CallbackInfo& info) {
  if (!IsOpen(info)) return info.Env().Undefined();
  if (has_read_) recorder_->EndReading();
  recorder_.reset();
  return info.Env().Undefined();
}

}  // namespace exitwatch
