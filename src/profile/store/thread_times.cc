#include "profile/store/thread_times.h"

#include <algorithm>
#include <utility>

namespace flamewire::profile {

namespace {

// Threads come and go. Above this limit new threads are ignored.
constexpr std::size_t max_lives = 50'000;

}  // namespace

void ThreadTimesHistory::add(ThreadId thread, const wire::ThreadTimes& times) {
    const auto [place, added] = index_.try_emplace(thread, lives_.size());
    if (added) {
        if (lives_.size() >= max_lives) {
            index_.erase(place);
            return;
        }
        lives_.push_back({thread, {}});
    }
    std::vector<ThreadStretch>& stretches = lives_[place->second].stretches;
    const std::uint64_t start_ns = times.end_ns - times.length_ns();
    if (times.length_ns() == 0 || (!stretches.empty() && start_ns < stretches.back().times.end_ns)) return;
    stretches.push_back({start_ns, times});
    end_ns_ = std::max(end_ns_, times.end_ns);
    if (++stretches_ > max_stretches_) coarsen();
}

// Merges neighbors if the result is at most as wide as four average stretches, gaps included. Any two adjacent stretches are
// then wider together, so at most half of them (plus one) remain.
void ThreadTimesHistory::coarsen() {
    for (ThreadLife& life : lives_) {
        std::vector<ThreadStretch>& all = life.stretches;
        const std::size_t half = (all.size() + 1) / 2;
        if (half < 2) continue;
        const std::uint64_t widest_ns = (all[half - 1].times.end_ns - all[0].start_ns) / half * 4 + 4;
        std::size_t kept = 0;
        for (std::size_t i = 1; i < all.size(); ++i) {
            if (i < half && all[i].times.end_ns - all[kept].start_ns <= widest_ns)
                all[kept].times.add(all[i].times);
            else if (++kept != i)
                all[kept] = std::move(all[i]);
        }
        stretches_ -= all.size() - (kept + 1);
        all.resize(kept + 1);
        all.shrink_to_fit();
    }
    // With very many threads hardly anything can be merged. Raise the limit, so that not every new stretch tries again.
    max_stretches_ = std::max(max_stretches_, stretches_ + stretches_ / 4);
}

std::size_t ThreadTimesHistory::memory_bytes() const {
    std::size_t bytes = lives_.capacity() * sizeof(ThreadLife) + index_.size() * 4 * sizeof(void*);
    for (const ThreadLife& life : lives_) bytes += life.stretches.capacity() * sizeof(ThreadStretch);
    // Three buckets in each of the two lists, as measured with busy threads.
    return bytes + stretches_ * 6 * sizeof(wire::DurationCount);
}

}  // namespace flamewire::profile
