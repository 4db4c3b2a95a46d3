// A profile.proto as `pprof` and many others read it (field numbers: github.com/google/pprof, proto/profile.proto),
// compressed by gzip. Addresses are ELF virtual addresses behind a mapping of the whole address space, which is how
// pprof is told that nothing is to be subtracted; callers are the address of their call, not of the return.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "profile/formats/export_limit.h"
#include "profile/store/model.h"
#include "profile/store/store.h"

namespace flamewire::profile {

struct PprofOptions {
    std::int64_t started_ns = 0;  // wall clock at the first sample; 0: not known
    std::span<const std::pair<std::string, std::string>> tags{};
    std::size_t max_bytes = max_export_bytes;  // before it is compressed
};

// Each event has two sample types: samples/count and the event's own name and unit; with several events the first is
// called EVENT_samples. Samples have the labels pid, tid, thread and process. Time and CPU of samples have no place in
// the format. The first mapping is the program that most samples are of. What was lost is a comment. Each tag is a label of every sample, so that merged profiles can be told apart;
// one that has the name of a label of ours is called tag:NAME.
// too_large.
Result<std::string> pprof(const Store& store, const Filter& filter, const PprofOptions& options = {});

// pprof's word for our "ns".
inline constexpr std::string_view pprof_nanoseconds = "nanoseconds";

}  // namespace flamewire::profile
