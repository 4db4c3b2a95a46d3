// The rows of one batch. Adds up rows with equal (bucket, event, thread, cpu, stack). A hash table with open addressing
// refers to the vector of rows, so that closing a batch is a move.
#pragma once

#include <cstdint>
#include <vector>

#include "base/id_table.h"
#include "wire/batch.h"

namespace flamewire::recording {

class RowTable {
public:
    // Adds a row. Usually one sample: count 1 and its weight.
    void add(const wire::Row& row) {
        if ((rows_.size() + 1) * 2 > places_.size()) grow();
        std::uint32_t& place = places_[place_of(row)];
        if (place == 0) {
            rows_.push_back(row);
            place = static_cast<std::uint32_t>(rows_.size());
            return;
        }
        wire::Row& old = rows_[place - 1];
        old.count += row.count;
        old.weight += row.weight;
    }

    std::vector<wire::Row> take() {
        std::vector<wire::Row> rows;
        rows.swap(rows_);
        rows_.reserve(rows.size());
        // Room for twice as many rows as the last batch had. The memory of a burst is freed.
        places_.assign(places_for(rows.size()), 0);
        return rows;
    }

private:
    static std::size_t places_for(std::size_t rows) {
        std::size_t places = 64;
        while (places < rows * 2 + 2) places *= 2;
        return places;
    }

    std::size_t place_of(const wire::Row& row) const {
        const std::size_t mask = places_.size() - 1;
        std::uint64_t hash = mix_in(0, row.bucket);
        hash = mix_in(hash, std::uint64_t{row.stack} << 32 | row.thread);
        hash = mix_in(hash, std::uint64_t{row.cpu} << 32 | row.event);
        std::size_t index = static_cast<std::size_t>(hash) & mask;
        while (places_[index] != 0 && !same_key(rows_[places_[index] - 1], row)) index = (index + 1) & mask;
        return index;
    }

    static bool same_key(const wire::Row& a, const wire::Row& b) {
        return a.bucket == b.bucket && a.stack == b.stack && a.thread == b.thread && a.cpu == b.cpu &&
               a.event == b.event;
    }

    void grow() {
        places_.assign(places_for(rows_.size() * 2), 0);
        for (std::size_t i = 0; i < rows_.size(); ++i) places_[place_of(rows_[i])] = static_cast<std::uint32_t>(i + 1);
    }

    std::vector<wire::Row> rows_;
    std::vector<std::uint32_t> places_;  // index into rows_ plus 1; 0: free
};

}  // namespace flamewire::recording
