#include "profile/query/sample_cursor.h"

#include <utility>

#include "profile/store/tables.h"

namespace flamewire::profile {
namespace {

StackFrame frame_from(const Store::Tables& tables, const Location& location, const LocationFrame& frame) {
    const Function& function = tables.functions[frame.function];
    return {.function = function,
            .file = frame.file,
            .line = frame.line,
            .module = location.module,
            .address = location.address,
            .inlined = function.kind == FrameKind::inlined};
}

}  // namespace

SampleCursor::SampleCursor(const Store& store, RowFilter filter)
    : rows_(&store.tables().rows), filter_(std::move(filter)) {}

// False if no row of the chunk matches.
bool SampleCursor::open_chunk(const RowChunk& chunk) {
    Interruption::check();
    const OffsetRange range = offset_range(chunk, filter_.start_ns, filter_.end_ns);
    if (range.low >= range.high || chunk.last_offset < range.low || chunk.first_offset >= range.high) return false;
    low_ = range.low;
    width_ = range.high - range.low;
    wanted_.clear();
    bool any = false;
    for (const Lane& lane : chunk.lanes) {
        const bool wants = filter_.wants(lane);
        wanted_.push_back(wants ? 1 : 0);
        any = any || wants;
    }
    return any;
}

bool SampleCursor::next(SampleRow& row) {
    for (const std::span<const RowChunk> chunks = rows_->chunks(); chunk_ < chunks.size(); ++chunk_, open_ = false) {
        const RowChunk& chunk = chunks[chunk_];
        if (!open_) {
            row_ = 0;
            if (!open_chunk(chunk)) continue;
            open_ = true;
        }
        for (; row_ < chunk.size(); ++row_) {
            if (wanted_[chunk.lane[row_]] == 0 || chunk.offset[row_] - low_ >= width_) continue;
            row = {.time_ns = (chunk.base_bucket + chunk.offset[row_]) * chunk.bucket_ns,
                   .bucket_ns = chunk.bucket_ns,
                   .lane = chunk.lanes[chunk.lane[row_]],
                   .stack = chunk.stack[row_],
                   .weight = row_weight(chunk, row_),
                   .chunk = narrow32(chunk_),
                   .index = narrow32(row_)};
            ++row_;
            return true;
        }
    }
    return false;
}

std::size_t stack_count(const Store& store) { return store.tables().stacks.size(); }

void frames_of_stack(const Store& store, StackId stack, std::vector<StackFrame>& frames) {
    const Store::Tables& tables = store.tables();
    frames.clear();
    for (StackId at = stack; at != 0; at = tables.stacks.parent(at)) {
        const LocationId location = tables.stacks.label(at);
        for (const LocationFrame& frame : tables.frames_of(location))
            frames.push_back(frame_from(tables, tables.locations[location], frame));
    }
}

StackFrame innermost_frame(const Store& store, StackId stack) {
    const Store::Tables& tables = store.tables();
    if (stack == 0) return {};
    const LocationId location = tables.stacks.label(stack);
    return frame_from(tables, tables.locations[location], tables.frames_of(location).front());
}

std::vector<bool> sampled_stacks(const Store& store) {
    std::vector<bool> sampled(stack_count(store));
    for (const RowChunk& chunk : store.tables().rows.chunks()) {
        Interruption::check();
        for (const StackId stack : chunk.stack) sampled[stack] = true;
    }
    return sampled;
}

}  // namespace flamewire::profile
