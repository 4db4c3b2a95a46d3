#include "profile/store/hits.h"

#include <algorithm>
#include <utility>

namespace flamewire::profile {

LocationId HitChunk::place_of(std::uint64_t address) const {
    const auto found = std::ranges::lower_bound(places, address, {}, &Place::address);
    return found != places.end() && found->address == address ? found->location : 0;
}

std::size_t HitChunk::memory_bytes() const {
    std::size_t bytes = sizeof *this + hits.capacity() * sizeof(Hit) + values.capacity() * sizeof(std::uint64_t) +
                        places.capacity() * sizeof(Place) + texts.capacity() * sizeof(std::string);
    for (const std::string& one : texts) bytes += one.size();
    return bytes;
}

void HitHistory::add(HitChunk chunk) {
    if (chunk.hits.empty()) return;
    chunk.first = next_;
    next_ += chunk.hits.size();
    hits_ += chunk.hits.size();
    bytes_ += chunk.memory_bytes();
    chunks_.push_back(std::move(chunk));
    while (chunks_.size() > 1 && (hits_ > max_hits_ || bytes_ > max_bytes_)) {
        hits_ -= chunks_.front().hits.size();
        bytes_ -= chunks_.front().memory_bytes();
        chunks_.pop_front();
    }
}

}  // namespace flamewire::profile
