// Whole walks by libunwind, the peer of the bench. It has access to the same data as Flamewire's walk: the stack copy
// and the files of the modules, which are in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "samples.h"

namespace flamewire::bench {

class LibunwindWalk {
public:
    explicit LibunwindWalk(unwind::ModuleFiles& files);
    ~LibunwindWalk();
    LibunwindWalk(const LibunwindWalk&) = delete;
    LibunwindWalk& operator=(const LibunwindWalk&) = delete;

    // All calls must use the same address space, because the cache is by address.
    void walk(const perf_data::Start& start, unwind::CodeMap& map, std::vector<std::uint64_t>& pcs);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::bench
