#include "agent/perf/owners.h"

namespace flamewire::agent {

bool ThreadOwners::accept(std::uint32_t tid, std::uint32_t slot, std::uint32_t set) {
    if (!last_slots_ || last_tid_ != tid) {
        last_slots_ = &threads_[tid];
        last_tid_ = tid;
    }
    for (const auto& [known_slot, owner] : *last_slots_)
        if (known_slot == slot) return owner == set;
    last_slots_->emplace_back(slot, set);
    return true;
}

void ThreadOwners::forget(std::uint32_t tid) {
    if (last_tid_ == tid) last_slots_ = nullptr;
    threads_.erase(tid);
}

void ThreadOwners::forget_all() {
    last_slots_ = nullptr;
    threads_.clear();
}

void Coverage::opened(std::uint32_t tid, std::uint64_t complete_ns) {
    Thread thread{complete_ns};
    if (const auto found = doubtful_.find(tid); found != doubtful_.end()) {
        thread.generation = found->second;
        doubtful_.erase(found);
    }
    threads_[tid] = thread;
}

void Coverage::skipped(std::uint32_t tid) {
    doubtful_.erase(tid);
    threads_.try_emplace(tid);
}

void Coverage::exited(std::uint32_t tid) {
    doubtful_.erase(tid);
    threads_.erase(tid);
}

void Coverage::clear() {
    doubtful_.clear();
    threads_.clear();
}

bool Coverage::forked(std::uint32_t parent_tid, std::uint32_t child_tid, std::uint64_t time_ns) {
    if (known(child_tid)) return false;
    const auto found = threads_.find(parent_tid);
    if (found == threads_.end()) {
        const auto parent = doubtful_.find(parent_tid);
        return doubtful(child_tid, parent == doubtful_.end() ? 0 : parent->second);
    }
    Thread& parent = found->second;
    if (time_ns < parent.complete_ns) return doubtful(child_tid, parent.generation);
    if (parent.complete_ns > 0 && parent.first_child == 0) parent.first_child = child_tid;
    if (parent.first_child == child_tid)
        return doubtful(child_tid, parent.generation);  // repeats if the record has a copy
    threads_.try_emplace(child_tid);
    return false;
}

bool Coverage::doubtful(std::uint32_t child_tid, std::uint32_t parent_generation) {
    if (parent_generation >= max_generation) {
        threads_.try_emplace(child_tid);
        return false;
    }
    doubtful_[child_tid] = parent_generation + 1;
    return true;
}

bool SidebandCopies::repeats(const Key& key, std::uint64_t id) {
    if (key == last_ && id != first_id_) return true;
    last_ = key;
    first_id_ = id;
    return false;
}

}  // namespace flamewire::agent
