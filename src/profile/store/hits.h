// Samples of traced events, one by one, with their values. Memory is bounded: the newest ones stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/store/model.h"

namespace flamewire::profile {

struct Hit {
    std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC of the target
    ThreadId thread = 0;
    std::uint32_t cpu = 0;
    StackId stack = 0;
    std::uint64_t weight = 0;  // in the event's unit
};

// Hits of one event that came together.
struct HitChunk {
    EventId event = 0;
    std::size_t fields = 0;             // as many as Event::fields had
    std::uint32_t description = 0;      // Event::description; if that has changed since, the values cannot be shown
    std::vector<Hit> hits;              // of each CPU in time order
    std::vector<std::uint64_t> values;  // `fields` for each hit; of a text: the index into texts
    std::vector<std::string> texts;
    // What is at an address that is a value. Ascending.
    struct Place {
        std::uint64_t address = 0;
        LocationId location = 0;
    };
    std::vector<Place> places;
    std::uint64_t first = 0;  // number of its first hit, counted from the start of the session

    [[nodiscard]] std::span<const std::uint64_t> values_of(std::size_t hit) const {
        return std::span(values).subspan(hit * fields, fields);
    }
    // Empty if there is no such text.
    [[nodiscard]] std::string_view text(std::uint64_t index) const {
        return index < texts.size() ? std::string_view(texts[static_cast<std::size_t>(index)]) : std::string_view();
    }
    // 0: not known.
    [[nodiscard]] LocationId place_of(std::uint64_t address) const;
    [[nodiscard]] std::size_t memory_bytes() const;
};

class HitHistory {
public:
    static constexpr std::size_t default_hits = 200'000, default_bytes = std::size_t{128} << 20;
    explicit HitHistory(std::size_t max_hits = default_hits, std::size_t max_bytes = default_bytes)
        : max_hits_(max_hits), max_bytes_(max_bytes) {}

    // Removes the oldest chunks if there are too many hits.
    void add(HitChunk chunk);
    // Hits that were recorded, but came without their values because there were too many at once.
    void add_dropped(std::uint64_t hits) { dropped_ += hits; }

    // In the order in which they came.
    [[nodiscard]] const std::deque<HitChunk>& chunks() const { return chunks_; }
    [[nodiscard]] std::size_t size() const { return hits_; }
    // The number of the next hit: those that came so far, including removed ones.
    [[nodiscard]] std::uint64_t next() const { return next_; }
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
    [[nodiscard]] std::size_t memory_bytes() const { return bytes_; }

private:
    std::size_t max_hits_, max_bytes_;
    std::deque<HitChunk> chunks_;
    std::size_t hits_ = 0, bytes_ = 0;
    std::uint64_t next_ = 0, dropped_ = 0;
};

}  // namespace flamewire::profile
