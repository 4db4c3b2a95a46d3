// Reads rows and stacks of a store one at a time, for callers that cannot wait for a whole answer or hold it in memory.
// The store must not change while a cursor exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "profile/store/model.h"
#include "profile/store/rows.h"
#include "profile/store/store.h"

namespace flamewire::profile {

// One row. Its samples were taken in [time_ns, time_ns + bucket_ns), CLOCK_MONOTONIC of the target.
struct SampleRow {
    std::uint64_t time_ns = 0, bucket_ns = 0;
    Lane lane;  // cpu may be folded_cpu
    StackId stack = 0;
    Weight weight;
    std::uint32_t chunk = 0, index = 0;  // where the store keeps it
};

class SampleCursor {
public:
    // Wants the rows that match, in order of arrival. `threads` of the filter must be empty or as long as threads().
    SampleCursor(const Store& store, RowFilter filter);

    // False at the end.
    bool next(SampleRow& row);

private:
    bool open_chunk(const RowChunk& chunk);

    const RowTable* rows_;
    RowFilter filter_;
    std::size_t chunk_ = 0, row_ = 0;
    bool open_ = false;  // rows of chunk_ are being read
    std::uint64_t low_ = 0, width_ = 0;
    std::vector<std::uint8_t> wanted_;  // by lane of the chunk
};

// One frame of a stack. `address`: ELF virtual, 0 for frames that have only a name.
struct StackFrame {
    Function function;
    StringId file = 0;  // of the call or of the sampled instruction
    std::uint32_t line = 0;
    ModuleId module = 0;
    std::uint64_t address = 0;
    bool inlined = false;
};

// Stack ids are below this number. Id 0 is the empty stack.
std::size_t stack_count(const Store& store);
// Replaces `frames` by those of a stack, innermost first, inlined functions included.
void frames_of_stack(const Store& store, StackId stack, std::vector<StackFrame>& frames);
// The innermost frame; that of id 0 has no name.
StackFrame innermost_frame(const Store& store, StackId stack);
// By stack id: whether a row has this stack. Ids of stacks that are only the outer part of others are false.
std::vector<bool> sampled_stacks(const Store& store);

}  // namespace flamewire::profile
