#include "unwind/join/caller_table.h"

namespace flamewire::unwind {
namespace {

constexpr std::size_t most_places = 8192;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;  // 2^64 / golden ratio, odd
    return hash ^ (hash >> 32);
}

std::uint64_t key_of(std::uint64_t thread_id, const StoredFrame& frame) {
    return mix(mix(mix(0, thread_id), frame.sp), frame.pc);
}

}  // namespace

CallerTable::Place& CallerTable::place_of(std::uint64_t thread_id, const StoredFrame& frame) {
    if (places_.empty()) places_.resize(most_places);
    const std::uint64_t key = key_of(thread_id, frame);
    Place& place = places_[key % most_places];
    if (place.frame != key) place = {key, 0, false};
    return place;
}

void CallerTable::note(std::uint64_t thread_id, const StoredFrame& frame, const StoredFrame& caller) {
    const std::uint64_t of = mix(mix(0, caller.sp), caller.pc);
    Place& place = place_of(thread_id, frame);
    place.several = place.several || (place.caller != 0 && place.caller != of);
    place.caller = of;
}

bool CallerTable::has_several(std::uint64_t thread_id, const StoredFrame& frame) const {
    if (places_.empty()) return false;
    const std::uint64_t key = key_of(thread_id, frame);
    const Place& place = places_[key % most_places];
    return place.frame == key && place.several;
}

}  // namespace flamewire::unwind
