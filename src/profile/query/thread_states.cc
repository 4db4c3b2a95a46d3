#include "profile/query/thread_states.h"

#include <algorithm>

#include "profile/query/accumulate.h"
#include "profile/store/tables.h"

namespace flamewire::profile {
namespace {

// Spreads stretches over the slices of a range, in proportion.
class Spread {
public:
    Spread(std::uint64_t start_ns, std::uint64_t end_ns, std::vector<StateTimes>& slices)
        : start_ns_(start_ns),
          width_ns_(static_cast<double>(end_ns - start_ns) / static_cast<double>(slices.size())),
          slices_(slices) {}

    void add(const ThreadStretch& stretch) {
        const double from = place_of(stretch.start_ns), to = place_of(stretch.times.end_ns);
        const double length = to - from;
        if (length <= 0) return;
        const double last = static_cast<double>(slices_.size());
        for (double at = std::max(from, 0.0); at < std::min(to, last);) {
            const auto slice = static_cast<std::size_t>(at);
            const double until = std::min({to, last, static_cast<double>(slice + 1)});
            for (std::size_t state = 0; state < wire::thread_states; ++state)
                slices_[slice][state] += static_cast<double>(stretch.times.state_ns[state]) * (until - at) / length;
            at = until;
        }
    }

private:
    // The position of a time, in slices from the start of the range.
    [[nodiscard]] double place_of(std::uint64_t time_ns) const {
        const double ns =
            time_ns < start_ns_ ? -static_cast<double>(start_ns_ - time_ns) : static_cast<double>(time_ns - start_ns_);
        return ns / width_ns_;
    }

    std::uint64_t start_ns_;
    double width_ns_;
    std::vector<StateTimes>& slices_;
};

// Calls `visit(life)` for each thread that the filter wants.
template <class Visit>
void for_lives(const Store& store, const Filter& filter, Visit visit) {
    const RowFilter wanted = select(store.tables(), filter).rows;
    for (const ThreadLife& life : store.thread_times().lives())
        if (wanted.threads.empty() || wanted.threads[life.thread] != 0) visit(life);
}

}  // namespace

ThreadStatesAnswer states_of_threads(const Store& store, const Filter& filter, std::uint64_t session_start_ns,
                                     std::size_t slices) {
    ThreadStatesAnswer answer;
    const std::uint64_t known_until_ns = store.thread_times().end_ns();
    answer.known = known_until_ns != 0;
    answer.start_ns = std::max(filter.start_ns, session_start_ns);
    answer.end_ns = std::max(answer.start_ns, std::min(filter.end_ns, known_until_ns));
    if (answer.end_ns == answer.start_ns) return answer;
    for_lives(store, filter, [&](const ThreadLife& life) {
        ThreadStates one;
        one.thread = life.thread;
        one.slices.resize(std::max<std::size_t>(slices, 1));
        Spread spread(answer.start_ns, answer.end_ns, one.slices);
        for (const ThreadStretch& stretch : life.stretches) spread.add(stretch);
        double known_ns = 0;
        for (const StateTimes& slice : one.slices)
            for (std::size_t state = 0; state < wire::thread_states; ++state) {
                one.sums[state] += slice[state];
                known_ns += slice[state];
            }
        if (known_ns == 0) return;
        if (slices == 0) one.slices.clear();
        answer.threads.push_back(std::move(one));
    });
    const auto awake = [](const ThreadStates& one) { return one.sums[0] + one.sums[1]; };
    std::ranges::stable_sort(answer.threads, std::ranges::greater{}, awake);
    return answer;
}

std::vector<Scheduling> scheduling(const Store& store, const Filter& filter) {
    std::vector<Scheduling> all;
    for_lives(store, filter, [&](const ThreadLife& life) {
        Scheduling one{life.thread, {}};
        for (const ThreadStretch& stretch : life.stretches)
            if (stretch.times.end_ns > filter.start_ns && stretch.times.end_ns <= filter.end_ns)
                one.times.add(stretch.times);
        if (one.times.length_ns() != 0) all.push_back(std::move(one));
    });
    const auto queued = [](const Scheduling& one) {
        return one.times.state_ns[static_cast<std::size_t>(wire::ThreadState::runnable)];
    };
    std::ranges::stable_sort(all, std::ranges::greater{}, queued);
    return all;
}

}  // namespace flamewire::profile
