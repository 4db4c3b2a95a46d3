// Internal header of the batch decoder: one reader per message, and columns, which become values only after all fields
// are read. Readers throw Malformed on invalid input; decode() catches it.
#pragma once

#include <protozero/pbf_reader.hpp>

#include <string>
#include <vector>

#include "wire/batch.h"
#include "wire/batch_fields.h"

namespace flamewire::wire::read {

using protozero::pbf_reader;

// `what` becomes part of the error message.
struct Malformed {
    const char* what;
};

constexpr std::uint32_t varint(field::Tag tag) {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t bytes(field::Tag tag) {
    return protozero::tag_and_type(tag, protozero::pbf_wire_type::length_delimited);
}

// Throws Malformed if the number has more than 32 bits.
std::uint32_t narrow(std::uint64_t value);
std::uint32_t get_u32(pbf_reader& in);
std::string get_text(pbf_reader& in);

// Adds an entry. Throws Malformed if the list already has `limit` entries.
template <class T>
T& append(std::vector<T>& list, std::size_t limit) {
    if (list.size() >= limit) throw Malformed{"a list is longer than a batch may have"};
    return list.emplace_back();
}

Recording recording(pbf_reader in);
Module module(pbf_reader in);
Process process(pbf_reader in);
Thread thread(pbf_reader in);
Event event(pbf_reader in);
Loss loss(pbf_reader in);
Symbol symbol(pbf_reader in);
Notice notice(pbf_reader in);
ProcessUnwind process_unwind(pbf_reader in);
CounterReading counters(pbf_reader in);
ThreadTimes thread_times(pbf_reader in);
AgentStats agent(pbf_reader in);
End end(pbf_reader in);
// Adds nothing for a kind of a later version.
void lifecycle(pbf_reader in, std::vector<Lifecycle>& list);

using Column = std::vector<std::uint64_t>;

struct StackColumns {
    Column parent, location;
};

struct RowColumns {
    std::uint64_t base_bucket = 0, bucket_span = 0;
    std::uint32_t bucket_ns = default_bucket_ns;
    Column group_event, group_thread, group_cpu, group_rows, key, count, weight;
};

std::vector<Location> locations(pbf_reader in);
void stacks(pbf_reader in, StackColumns& columns);
std::vector<StackNode> make_stacks(const StackColumns& columns, Id stack_base, Id location_base);
void rows(pbf_reader in, RowColumns& rows);
std::vector<Row> make_rows(const RowColumns& in, const EventPeriods& periods);

}  // namespace flamewire::wire::read
