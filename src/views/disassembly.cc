#include "views/disassembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace flamewire::views {
namespace {

// Part of a long function that is shown at once: some 16,000 instructions. An x86-64 instruction has at most 15 bytes.
constexpr std::uint64_t most_bytes = 64 << 10;
constexpr std::size_t most_copies = 100;
// For code without a symbol, show what follows an address, because the bounds of the function are unknown.
constexpr std::uint64_t unnamed_bytes = 256;

void weigh(std::vector<CodeCopy>& copies, const CodeHeat& heat) {
    for (CodeCopy& copy : copies)
        for (const profile::AddressRow& row : heat.at(copy.module))
            if (copy.contains(row.address.lookup())) {
                copy.self += row.self;
                copy.total += row.total;
            }
    std::ranges::sort(copies, {}, [](const CodeCopy& copy) {
        return std::tuple(~copy.self.weight, ~copy.total.weight, copy.module, copy.range.start);
    });
    if (copies.size() > most_copies) copies.resize(most_copies);
}

// The part of a long function that is shown. It starts at a known instruction boundary: the function's first
// instruction, or one with samples.
struct Window {
    std::uint64_t start = 0, size = 0;
};

Window window_of(const CodeCopy& copy, const std::vector<profile::AddressRow>& heat, const CodeQuery& query) {
    const std::uint64_t end = copy.range.start + copy.range.size;
    if (query.from && copy.contains(*query.from)) return {*query.from, std::min(most_bytes, end - *query.from)};
    if (copy.range.size <= most_bytes) return {copy.range.start, copy.range.size};
    const profile::AddressRow* hottest = nullptr;
    for (const profile::AddressRow& row : heat)
        if (copy.contains(row.address.value) && (hottest == nullptr || row.self.weight > hottest->self.weight))
            hottest = &row;
    std::uint64_t wanted = query.at && copy.contains(*query.at) ? *query.at : hottest ? hottest->address.value : 0;
    wanted = wanted - copy.range.start > most_bytes / 2 ? wanted - most_bytes / 2 : copy.range.start;
    std::uint64_t start = copy.range.start;
    for (const profile::AddressRow& row : heat)
        if (copy.contains(row.address.value) && row.address.value >= wanted) {
            start = wanted == copy.range.start ? wanted : row.address.value;
            break;
        }
    return {start, std::min(most_bytes, end - start)};
}

std::size_t choose(const std::vector<CodeCopy>& copies, const CodeQuery& query) {
    if (query.at)
        for (std::size_t i = 0; i < copies.size(); ++i)
            if (copies[i].contains(*query.at)) return i;
    return 0;
}

// Texts, without duplicates. [0] is empty.
class Texts {
public:
    std::uint32_t add(const std::string& text) {
        const auto [at, added] = index_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
        if (added) texts_.push_back(text);
        return at->second;
    }
    std::vector<std::string> take() { return std::move(texts_); }

private:
    std::vector<std::string> texts_ = {""};
    std::unordered_map<std::string, std::uint32_t> index_ = {{"", 0}};
};

// Index of the instruction that contains `address`. If there is none, the number of instructions.
std::size_t index_of(const std::vector<symbol::Instruction>& instructions, std::uint64_t address) {
    const auto after = std::ranges::upper_bound(instructions, address, {}, &symbol::Instruction::address);
    if (after == instructions.begin()) return instructions.size();
    const symbol::Instruction& found = *std::prev(after);
    if (address - found.address >= found.size) return instructions.size();
    return static_cast<std::size_t>(after - instructions.begin()) - 1;
}

void add_weights(Disassembly& code, const std::vector<profile::AddressRow>& heat) {
    const std::size_t count = code.instructions.size();
    code.self.resize(count);
    code.total.resize(count);
    for (const profile::AddressRow& row : heat)
        if (const std::size_t at = index_of(code.instructions, row.address.lookup()); at < count) {
            code.self[at] += row.self;
            code.total[at] += row.total;
        }
}

void add_places(Disassembly& code, Texts& texts, const symbol::ModuleIdentity& module, symbol::Symbolizer& symbolizer) {
    std::vector<CodeAddress> addresses;
    addresses.reserve(code.instructions.size());
    for (const symbol::Instruction& instruction : code.instructions) addresses.push_back({instruction.address, false});
    const symbol::Resolved resolved = symbolizer.resolve(module, addresses);
    std::map<std::vector<std::uint32_t>, std::uint32_t> known;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        std::vector<std::uint32_t> place;
        for (std::uint32_t frame = resolved.first[i]; frame < resolved.first[i + 1]; ++frame) {
            const symbol::SourceFrame& source = resolved.frames[frame];
            place.push_back(texts.add(resolved.strings[source.function]));
            place.push_back(texts.add(resolved.strings[source.file]));
            place.push_back(source.line);
        }
        const auto [at, added] = known.try_emplace(place, static_cast<std::uint32_t>(code.places.size()));
        if (added) code.places.push_back(std::move(place));
        code.place.push_back(at->second);
    }
}

void add_targets(Disassembly& code, Texts& texts, const symbol::ModuleIdentity& module, const CodeCopy& copy,
                 symbol::Symbolizer& symbolizer) {
    std::vector<CodeAddress> outside;
    for (const symbol::Instruction& instruction : code.instructions)
        if (instruction.target && !copy.contains(*instruction.target)) outside.push_back({*instruction.target, false});
    const auto functions = symbolizer.functions(module, outside);
    std::unordered_map<std::uint64_t, std::uint32_t> names;
    for (std::size_t i = 0; i < outside.size(); ++i) {
        const symbol::FunctionRange& range = functions[i];
        if (range.size == 0) continue;
        const std::uint64_t inside = outside[i].value - range.start;
        names[outside[i].value] = texts.add(inside == 0 ? range.name : fmt::format("{}+{:#x}", range.name, inside));
    }
    for (const symbol::Instruction& instruction : code.instructions) {
        const bool jumps = instruction.target && instruction.flow != symbol::Flow::call;
        const std::size_t at = jumps ? index_of(code.instructions, *instruction.target) : code.instructions.size();
        code.target.push_back(at < code.instructions.size() ? static_cast<std::int64_t>(at) : -1);
        const auto name = names.find(instruction.target.value_or(0));
        code.target_name.push_back(name == names.end() ? 0 : name->second);
    }
}

std::string note_of(const Window& window, const CodeCopy& copy, const symbol::ModuleIdentity& module) {
    std::vector<std::string> notes;
    if (window.size < copy.range.size)
        notes.push_back(fmt::format("{} of {} bytes of this function are shown", window.size, copy.range.size));
    if (!copy.named)
        notes.emplace_back(
            "no symbol covers this code: what follows the sampled address is shown, where the function begins and ends "
            "is not known");
    if (module.kind == symbol::ModuleKind::kernel)
        notes.emplace_back("as linked: the running kernel patches some of its instructions");
    return fmt::format("{}", fmt::join(notes, "; "));
}

}  // namespace

CodePlaces find_code(const profile::Store& store, const CodeQuery& query) {
    CodePlaces found;
    if (query.address) {
        for (profile::ModuleId id = 1; id < store.modules().size(); ++id)
            if (store.modules()[id].name == query.module) found.places.push_back({id, {*query.address, false}, false});
    } else if (!query.function.empty()) {
        found.places = profile::code_places(store, query.function, query.module);
    } else {
        found.places = profile::line_places(store, query.file, query.line);
    }
    for (const profile::CodePlace& place : found.places)
        if (place.module != 0 && place.module < store.modules().size()) {
            const profile::Module& module = store.modules()[place.module];
            found.modules.try_emplace(place.module, CodePlaces::Module{module.identity, module.name});
        }
    return found;
}

std::vector<CodeCopy> copies_of(const CodePlaces& code, symbol::Symbolizer& symbolizer) {
    std::vector<CodeCopy> copies;
    for (const auto& [id, module] : code.modules) {
        std::vector<profile::CodePlace> places;
        std::vector<CodeAddress> addresses;
        for (const profile::CodePlace& place : code.places) {
            if (place.module != id) continue;
            places.push_back(place);
            addresses.push_back(place.address);
        }
        const auto ranges = symbolizer.functions(module.identity, addresses);
        for (std::size_t i = 0; i < places.size(); ++i) {
            const std::uint64_t address = places[i].address.lookup();
            const auto known = std::ranges::find_if(
                copies, [&](const CodeCopy& copy) { return copy.module == id && copy.contains(address); });
            if (known != copies.end()) {
                known->inlined = known->inlined && places[i].inlined;
                continue;
            }
            CodeCopy copy{id, ranges[i], ranges[i].size != 0, places[i].inlined, {}, {}};
            if (!copy.named) copy.range = {{}, places[i].address.value, unnamed_bytes};
            copies.push_back(std::move(copy));
        }
    }
    return copies;
}

CodeHeat heat_of(const profile::Store& store, const profile::Filter& filter, const std::vector<CodeCopy>& copies) {
    CodeHeat heat;
    for (const CodeCopy& copy : copies)
        if (!heat.contains(copy.module)) heat[copy.module] = profile::address_heat(store, filter, copy.module);
    return heat;
}

Disassembly disassemble(const CodePlaces& places, std::vector<CodeCopy> copies, const CodeHeat& heat,
                        const CodeQuery& query, symbol::Symbolizer& symbolizer) {
    Disassembly code;
    weigh(copies, heat);
    code.copies = std::move(copies);
    code.chosen = choose(code.copies, query);
    const CodeCopy& copy = code.copies[code.chosen];
    const symbol::ModuleIdentity& module = places.modules.at(copy.module).identity;
    const std::vector<profile::AddressRow>& rows = heat.at(copy.module);
    const Window window = window_of(copy, rows, query);
    const symbol::ModuleCode bytes = symbolizer.code(module, window.start, window.size);
    code.file = bytes.file;
    code.machine = bytes.machine;
    code.problem = bytes.problem;
    code.remedy = bytes.remedy;
    if (code.problem.empty()) {
        if (auto decoded = symbol::disassemble(bytes.view(), most_bytes))
            code.instructions = std::move(*decoded);
        else
            code.problem = decoded.error().message;
    }
    Texts texts;
    add_weights(code, rows);
    add_places(code, texts, module, symbolizer);
    add_targets(code, texts, module, copy, symbolizer);
    code.strings = texts.take();
    if (code.problem.empty()) {
        code.note = note_of(window, copy, module);
        const std::uint64_t end =
            code.instructions.empty() ? 0 : code.instructions.back().address + code.instructions.back().size;
        if (end != 0 && end < copy.range.start + copy.range.size) code.next = end;
    }
    if (window.start > copy.range.start) code.first = copy.range.start;
    return code;
}

}  // namespace flamewire::views
