#include "symbol/symbolizer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "symbol/files/fetched_file.h"
#include "symbol/module.h"

namespace flamewire::symbol {
namespace {

// Identifies a module. A build-id is sufficient, except for the kernel, where the boot also determines kallsyms.
using ModuleKey = std::tuple<ModuleKind, std::string, std::string, std::string, std::uint64_t>;

ModuleKey key_of(const ModuleIdentity& module) {
    if (module.kind == ModuleKind::kernel) return {module.kind, module.build_id, module.boot_id, {}, 0};
    // The path stays part of the key, because it is one of the places to search. The path from the first caller may not
    // exist.
    return {module.kind, module.build_id, {}, module.path, module.build_id.empty() ? module.size : 0};
}

}  // namespace

struct Symbolizer::State {
    struct Entry {
        std::mutex mutex;  // libdw handles are not thread-safe, and the index grows as it is used
        std::unique_ptr<Module> module;
    };

    // Holds the entry's mutex while `use` runs. Other modules are not blocked.
    template <class Use>
    auto with_module(const ModuleIdentity& identity, Use use) {
        std::shared_ptr<Entry> entry;
        Config current;
        std::string folder;
        {
            const std::scoped_lock lock(mutex);
            folder = config.module_directory;
        }
        // Recordings of several agents share a module's entry, unless one of the agents sent its file.
        std::string fetched = identity.kind == ModuleKind::file ? fetched_path(folder, identity) : std::string();
        if (!fetched.empty() && ::access(fetched.c_str(), F_OK) != 0) fetched.clear();
        {
            const std::scoped_lock lock(mutex);
            std::shared_ptr<Entry>& slot = modules[{key_of(identity), fetched}];
            if (!slot) slot = std::make_shared<Entry>();
            entry = slot;
            current = config;
        }
        const std::scoped_lock lock(entry->mutex);
        if (!entry->module) entry->module = std::make_unique<Module>(identity, current);
        return use(*entry->module);
    }

    mutable std::mutex mutex;  // guards config and modules
    Config config;
    // The second part of the key is fetched_path(), if that file exists.
    std::map<std::pair<ModuleKey, std::string>, std::shared_ptr<Entry>> modules;
    std::atomic<std::uint64_t> generation{1};
};

Symbolizer::Symbolizer(Config config) : state_(std::make_unique<State>()) { state_->config = std::move(config); }
Symbolizer::~Symbolizer() = default;

void Symbolizer::set_config(Config config) {
    const std::scoped_lock lock(state_->mutex);
    state_->config = std::move(config);
    state_->modules.clear();  // a running lookup keeps its own entry alive
    ++state_->generation;
}

Config Symbolizer::config() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->config;
}

// Forgets all identities with this build-id, because they differ only in the paths that were searched.
void Symbolizer::forget(const ModuleIdentity& module) {
    const std::scoped_lock lock(state_->mutex);
    std::erase_if(state_->modules, [&](const auto& entry) {
        const ModuleKey& key = entry.first.first;
        return module.build_id.empty() ? key == key_of(module) : std::get<1>(key) == module.build_id;
    });
    ++state_->generation;
}

std::uint64_t Symbolizer::generation() const { return state_->generation; }

Resolved Symbolizer::resolve(const ModuleIdentity& identity, std::span<const CodeAddress> addresses) {
    return state_->with_module(identity, [&](Module& module) {
        Resolved resolved;
        resolved.first.reserve(addresses.size() + 1);
        resolved.strings.emplace_back();
        std::vector<std::uint32_t> numbers;  // by number in the module's pool: number in `resolved`; 0: not added yet
        const auto carry = [&](std::uint32_t text) {
            if (text == 0) return std::uint32_t{0};
            if (text >= numbers.size()) numbers.resize(module.strings().size());
            if (numbers[text] == 0) {
                numbers[text] = static_cast<std::uint32_t>(resolved.strings.size());
                resolved.strings.push_back(module.strings().at(text));
            }
            return numbers[text];
        };
        std::vector<IndexedFrame> frames;
        for (const CodeAddress& address : addresses) {
            resolved.first.push_back(static_cast<std::uint32_t>(resolved.frames.size()));
            frames.clear();
            module.find(address, frames);
            for (const IndexedFrame& frame : frames)
                resolved.frames.push_back({carry(frame.function), carry(frame.file), frame.line, frame.inlined});
        }
        resolved.first.push_back(static_cast<std::uint32_t>(resolved.frames.size()));
        return resolved;
    });
}

ModuleReport Symbolizer::report(const ModuleIdentity& identity) {
    return state_->with_module(identity, [](const Module& module) { return module.report(); });
}

std::vector<FunctionRange> Symbolizer::functions(const ModuleIdentity& identity,
                                                 std::span<const CodeAddress> addresses) {
    return state_->with_module(identity, [&](Module& module) {
        std::vector<FunctionRange> ranges;
        ranges.reserve(addresses.size());
        for (const CodeAddress& address : addresses) ranges.push_back(module.function(address));
        return ranges;
    });
}

ModuleCode Symbolizer::code(const ModuleIdentity& identity, std::uint64_t start, std::uint64_t size) {
    return state_->with_module(identity, [&](Module& module) { return module.code(start, size); });
}

}  // namespace flamewire::symbol
