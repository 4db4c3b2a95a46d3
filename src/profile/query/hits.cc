#include "profile/query/hits.h"

#include "profile/query/accumulate.h"
#include "profile/store/tables.h"

namespace flamewire::profile {

std::vector<Function> functions_of(const Store& store, StackId stack, std::size_t limit) {
    const Store::Tables& tables = store.tables();
    std::vector<Function> functions;
    for (NodeId node = tables.node_of_stack[stack]; node != 0 && functions.size() < limit;
         node = tables.nodes.parent(node))
        functions.push_back(tables.functions[tables.nodes.label(node)]);
    return functions;
}

void for_each_hit(const Store& store, const Filter& filter,
                  const std::function<void(const HitChunk& chunk, std::size_t index)>& visit) {
    const RowFilter rows = select(store.tables(), filter).rows;
    for (const HitChunk& chunk : store.hits().chunks()) {
        if (filter.event && chunk.event != *filter.event) continue;
        for (std::size_t i = 0; i < chunk.hits.size(); ++i) {
            if (i % 256 == 0) Interruption::check();
            const Hit& hit = chunk.hits[i];
            if (hit.time_ns < filter.start_ns || hit.time_ns >= rows.end_ns) continue;
            if (rows.threads.empty() || rows.threads[hit.thread] != 0) visit(chunk, i);
        }
    }
}

std::string place_name(const Store& store, LocationId location) {
    const Store::Tables& tables = store.tables();
    if (location == 0) return {};
    const std::span<const LocationFrame> frames = tables.frames_of(location);
    if (frames.empty()) return {};
    const Function& function = tables.functions[frames.front().function];
    return function.kind == FrameKind::unknown ? std::string() : std::string(tables.strings[function.name]);
}

}  // namespace flamewire::profile
