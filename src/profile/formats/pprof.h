// Exports a gzip-compressed profile.proto, which `pprof` and many other tools read (field numbers:
// github.com/google/pprof, proto/profile.proto). Addresses are ELF virtual addresses in a mapping that spans the whole
// address space, so pprof subtracts nothing. The address of a caller is the address of its call, not the return
// address.
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
    std::int64_t started_ns = 0;  // wall clock at the first sample; 0: unknown
    std::span<const std::pair<std::string, std::string>> tags{};
    std::size_t max_bytes = max_export_bytes;  // before compression
};

// Each event has two sample types: samples/count, and the event's own name and unit. With several events the first is
// called EVENT_samples. Samples have the labels pid, tid, thread, process, container_id, pod_uid and cgroup_path. The
// format has no fields for the time and the CPU of samples. The first mapping is the executable with the most samples.
// Lost samples are reported in a comment. Each tag is a label of every sample, so that merged profiles can be distinguished
// apart. A tag with the name of one of these labels becomes tag:NAME.
// too_large: the profile exceeds `max_bytes`.
Result<std::string> pprof(const Store& store, const Filter& filter, const PprofOptions& options = {});

// pprof's name for the unit "ns".
inline constexpr std::string_view pprof_nanoseconds = "nanoseconds";

}  // namespace flamewire::profile
