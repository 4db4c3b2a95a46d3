#include "profile/symbols/symbol_cache.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <unordered_map>

#include "profile/store/tables.h"

namespace flamewire::profile {
namespace {

// Appends frames of one address to an answer. Converts text numbers from `from` to those of the answer.
class ResolvedBuilder {
public:
    explicit ResolvedBuilder(symbol::Resolved& to) : to_(to) { to_.strings.emplace_back(); }

    void begin() { to_.first.push_back(narrow32(to_.frames.size())); }
    void end() { begin(); }
    void add(symbol::SourceFrame frame, std::string_view function, std::string_view file) {
        frame.function = number(function);
        frame.file = number(file);
        to_.frames.push_back(frame);
    }
    void add_all(const symbol::Resolved& from, std::size_t index) {
        for (std::uint32_t i = from.first[index]; i < from.first[index + 1]; ++i)
            add(from.frames[i], from.strings[from.frames[i].function], from.strings[from.frames[i].file]);
    }

private:
    std::uint32_t number(std::string_view text) {
        if (text.empty()) return 0;
        const auto [entry, added] = numbers_.try_emplace(std::string(text), narrow32(to_.strings.size()));
        if (added) to_.strings.emplace_back(text);
        return entry->second;
    }

    symbol::Resolved& to_;
    std::unordered_map<std::string, std::uint32_t> numbers_;
};

// The name as the symbolizer returned it. For a kernel function it includes the kernel module.
std::string symbolizer_name(const Store::Tables& t, const Location& location, const Function& function) {
    if (function.kind == FrameKind::unknown)
        return {};  // a line without a function; what is shown stands for the address
    std::string name(t.strings[function.name]);
    const std::string_view module = t.strings[function.module];
    const bool of_kernel = t.modules[location.module].identity.kind == symbol::ModuleKind::kernel;
    if (of_kernel && module.ends_with(".ko")) name.append(" [").append(module.substr(0, module.size() - 3)).append("]");
    return name;
}

CachedModule symbolized_module(const Store::Tables& t, ModuleId id, std::vector<LocationId>& locations) {
    const auto address_of = [&](LocationId location) { return t.locations[location].code_address(); };
    // Locations that differ only in other flags have the same answer.
    std::ranges::sort(locations, {}, address_of);
    CachedModule cached;
    cached.identity = t.modules[id].identity;
    ResolvedBuilder builder(cached.frames);
    for (const LocationId location : locations) {
        const CodeAddress address = address_of(location);
        if (!cached.addresses.empty() && cached.addresses.back() == address) continue;
        cached.addresses.push_back(address);
        builder.begin();
        for (const LocationFrame& frame : t.frames_of(location)) {
            const Function& function = t.functions[frame.function];
            builder.add({.line = frame.line, .inlined = function.kind == FrameKind::inlined},
                        symbolizer_name(t, t.locations[location], function), t.strings[frame.file]);
        }
    }
    builder.end();
    return cached;
}

}  // namespace

std::vector<SymbolizedModule> symbolized_modules(const Store& store) {
    const Store::Tables& t = store.tables();
    std::vector<std::vector<LocationId>> named(t.modules.size());
    for (LocationId id = 1; id < t.locations.size(); ++id)
        if (t.locations[id].by_symbolizer) named[t.locations[id].module].push_back(id);
    std::vector<SymbolizedModule> modules;
    for (ModuleId id = 1; id < named.size(); ++id)
        if (!named[id].empty()) modules.push_back({id, symbolized_module(t, id, named[id])});
    return modules;
}

symbol::Resolved CachedModule::resolve(std::span<const CodeAddress> wanted) const {
    symbol::Resolved resolved;
    ResolvedBuilder builder(resolved);
    for (const CodeAddress& address : wanted) {
        builder.begin();
        const auto at = std::ranges::lower_bound(addresses, address);
        if (at != addresses.end() && *at == address)
            builder.add_all(frames, static_cast<std::size_t>(at - addresses.begin()));
    }
    builder.end();
    return resolved;
}

const CachedModule* find_cached(std::span<const CachedModule> modules, const symbol::ModuleIdentity& identity) {
    const auto all_of = [](const symbol::ModuleIdentity& one) {
        return std::tie(one.kind, one.path, one.build_id, one.boot_id, one.size, one.mtime_ns);
    };
    const auto at =
        std::ranges::find_if(modules, [&](const CachedModule& it) { return all_of(it.identity) == all_of(identity); });
    return at == modules.end() ? nullptr : &*at;
}

void merge_cached(std::vector<CachedModule>& modules, CachedModule module) {
    const CachedModule* known = find_cached(modules, module.identity);
    if (known == nullptr) {
        modules.push_back(std::move(module));
        return;
    }
    CachedModule& one = modules[static_cast<std::size_t>(known - modules.data())];
    CachedModule both;
    std::ranges::set_union(one.addresses, module.addresses, std::back_inserter(both.addresses));
    const CachedModule& better = module.report.quality > one.report.quality ? module : one;
    const CachedModule& other = &better == &one ? module : one;
    both.frames = coalesce(better.resolve(both.addresses), other.resolve(both.addresses));
    both.identity = better.identity;
    both.report = better.report;
    one = std::move(both);
}

symbol::Resolved coalesce(const symbol::Resolved& first, const symbol::Resolved& second) {
    symbol::Resolved both;
    ResolvedBuilder builder(both);
    for (std::size_t i = 0; i + 1 < first.first.size(); ++i) {
        builder.begin();
        builder.add_all(first.first[i] != first.first[i + 1] ? first : second, i);
    }
    builder.end();
    return both;
}

}  // namespace flamewire::profile
