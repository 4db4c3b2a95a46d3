#include "profile/formats/perf_data/deferred_samples.h"

#include <utility>

namespace flamewire::profile::perf_data {
namespace {

// Some tens of MiB. Most threads are in the kernel for the time of a few samples.
constexpr std::size_t most_samples = std::size_t{1} << 16, most_entries = std::size_t{1} << 22;

}  // namespace

void DeferredSamples::add(std::uint64_t cookie, const Sample& sample, const wire::Row& row,
                          const std::vector<SamplePeriods::Part>& parts) {
    const std::span<const std::uint64_t> own = sample.callchain.first(sample.callchain.size() - 2);
    Waiting waiting{{}, {own.begin(), own.end()}, row, parts};
    waiting.sample.event = sample.event;
    waiting.sample.pid = sample.pid;
    waiting.sample.ip = sample.ip;
    waiting.sample.cpu_mode = sample.cpu_mode;
    waiting_[cookie].push_back(std::move(waiting));
    ++count_;
    entries_ += own.size();
}

bool DeferredSamples::full() const { return count_ >= most_samples || entries_ >= most_entries; }

std::vector<DeferredSamples::Waiting> DeferredSamples::take(std::uint64_t cookie) {
    const auto found = waiting_.find(cookie);
    if (found == waiting_.end()) return {};
    std::vector<Waiting> samples = std::move(found->second);
    waiting_.erase(found);
    count_ -= samples.size();
    for (const Waiting& one : samples) entries_ -= one.callchain.size();
    return samples;
}

std::vector<DeferredSamples::Waiting> DeferredSamples::take_all() {
    std::vector<Waiting> samples;
    for (auto& [cookie, waiting] : std::exchange(waiting_, {}))
        for (Waiting& one : waiting) samples.push_back(std::move(one));
    count_ = entries_ = 0;
    return samples;
}

}  // namespace flamewire::profile::perf_data
