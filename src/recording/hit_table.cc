#include "recording/hit_table.h"

#include <algorithm>
#include <utility>

namespace flamewire::recording {
namespace {

// Of one event in one batch. A program has fewer places that call malloc().
constexpr std::size_t max_places = 4'096;

}  // namespace

HitTable::OfEvent& HitTable::of(wire::Id event) {
    const auto known = std::ranges::find(events_, event, [](const OfEvent& one) { return one.hits.event; });
    if (known != events_.end()) return *known;
    events_.emplace_back().hits.event = event;
    return events_.back();
}

std::uint64_t HitTable::text(OfEvent& table, Bytes bytes) {
    const auto [entry, added] =
        table.texts.try_emplace(std::string(as_text(bytes)), static_cast<std::uint32_t>(table.hits.texts.size()));
    if (added) {
        table.hits.texts.push_back(entry->first);
        text_bytes_ += bytes.size();
    }
    return entry->second;
}

std::vector<std::uint64_t> HitTable::add(wire::Id event, const wire::Hit& hit, const perf::Sample& sample,
                                         const perf::ValueFields& fields, std::endian order) {
    OfEvent& table = of(event);
    if (table.hits.hits.empty()) table.hits.fields = static_cast<std::uint32_t>(fields.size());
    std::vector<std::uint64_t> new_addresses;
    const bool full = hits_ == wire::max_batch_hits || text_bytes_ >= wire::max_hit_text_bytes ||
                      table.hits.texts.size() + fields.size() > wire::max_batch_hits;
    if (full || table.hits.fields != fields.size()) {
        ++table.hits.dropped;
        return new_addresses;
    }
    ++hits_;
    table.hits.hits.push_back(hit);
    for (const perf::ValueField& field : fields) {
        std::uint64_t value = 0;
        if (field.kind == perf::ValueKind::text || field.kind == perf::ValueKind::bytes)
            value = text(table, perf::bytes_of(field, sample.raw, order));
        else
            value = perf::value_of(field, sample.raw, sample.address, order);
        table.hits.values.push_back(value);
        // The address that a sample is about is that of data.
        const bool code = field.kind == perf::ValueKind::address && field.place == perf::ValueField::Place::fixed;
        if (code && value != 0 && table.places.size() < max_places && table.places.try_emplace(value, 0).second)
            new_addresses.push_back(value);
    }
    return new_addresses;
}

void HitTable::place(wire::Id event, std::uint64_t address, wire::Id location) { of(event).places[address] = location; }

std::vector<wire::Hits> HitTable::take() {
    std::vector<wire::Hits> all;
    for (OfEvent& table : events_) {
        for (const auto& [value, location] : table.places)
            if (location != 0) table.hits.addresses.push_back({value, location});
        std::ranges::sort(table.hits.addresses, {}, &wire::HitAddress::value);
        all.push_back(std::move(table.hits));
    }
    events_.clear();
    hits_ = text_bytes_ = 0;
    return all;
}

std::vector<wire::EventField> fields_on_wire(const perf::ValueFields& fields) {
    // perf::ValueKind has the same kinds, in the same order.
    std::vector<wire::EventField> described;
    for (const perf::ValueField& field : fields)
        described.push_back({field.name, static_cast<wire::FieldKind>(field.kind)});
    return described;
}

}  // namespace flamewire::recording
