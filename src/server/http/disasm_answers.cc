#include "server/http/disasm_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/hex.h"
#include "profile/query/code_heat.h"
#include "profile/query/query.h"
#include "server/http/session_view.h"
#include "symbol/disassembly/disassembly.h"
#include "symbol/symbolizer.h"

namespace flamewire::server {
namespace {

// Part of a long function that is shown at once: some 16,000 instructions. An x86-64 instruction has at most 15 bytes.
constexpr std::uint64_t most_bytes = 64 << 10;
constexpr std::size_t most_copies = 100;
// For code without a symbol, show what follows an address, because the bounds of the function are unknown.
constexpr std::uint64_t unnamed_bytes = 256;

struct Asked {
    std::string function, module, file;
    std::uint32_t line = 0;
    std::optional<std::uint64_t> address;  // in `module`
    std::optional<std::uint64_t> at, from;
};

Result<std::optional<std::uint64_t>> address_of(const Request& request, std::string_view name) {
    const std::string_view text = request.parameter(name);
    if (text.empty()) return std::optional<std::uint64_t>{};
    return std::optional<std::uint64_t>{TRY(parse_integer(name, text))};
}

Result<Asked> parse_asked(const Request& request) {
    Asked asked;
    asked.function = request.parameter("function");
    asked.module = request.parameter("module");
    asked.file = request.parameter("file");
    asked.address = TRY(address_of(request, "address"));
    asked.at = TRY(address_of(request, "at"));
    asked.from = TRY(address_of(request, "from"));
    if (const auto line = TRY(address_of(request, "line"))) {
        if (*line > std::numeric_limits<std::uint32_t>::max()) return fail(ErrorCode::invalid, "line is out of range");
        asked.line = static_cast<std::uint32_t>(*line);
    }
    const bool by_address = asked.address && !asked.module.empty();
    if (asked.function.empty() && !by_address && (asked.file.empty() || asked.line == 0))
        return fail(ErrorCode::invalid, "specify a function: function, or file and line, or module and address");
    return asked;
}

// A function's code in one module. The user selects one if there are several (clones, cold parts, several modules).
struct Copy {
    profile::ModuleId module = 0;
    symbol::FunctionRange range;
    bool named = true;    // a symbol defines where it begins and ends
    bool inlined = true;  // the requested function or line occurs here only inlined
    profile::Weight self, total;

    [[nodiscard]] bool contains(std::uint64_t address) const {
        return address >= range.start && address - range.start < range.size;
    }
};

struct ModuleNames {
    symbol::ModuleIdentity identity;
    std::string name;
};

// A copy of the store's data, so that files are read without holding the store.
struct Found {
    std::vector<profile::CodePlace> places;
    std::map<profile::ModuleId, ModuleNames> modules;
};

Found find_places(const profile::Store& store, const Asked& asked) {
    Found found;
    if (asked.address) {
        for (profile::ModuleId id = 1; id < store.modules().size(); ++id)
            if (store.modules()[id].name == asked.module) found.places.push_back({id, {*asked.address, false}, false});
    } else if (!asked.function.empty()) {
        found.places = profile::code_places(store, asked.function, asked.module);
    } else {
        found.places = profile::line_places(store, asked.file, asked.line);
    }
    for (const profile::CodePlace& place : found.places)
        if (place.module != 0 && place.module < store.modules().size()) {
            const profile::Module& module = store.modules()[place.module];
            found.modules.try_emplace(place.module, ModuleNames{module.identity, module.name});
        }
    return found;
}

std::vector<Copy> copies_of(const Found& found, symbol::Symbolizer& symbolizer) {
    std::vector<Copy> copies;
    for (const auto& [id, module] : found.modules) {
        std::vector<profile::CodePlace> places;
        std::vector<CodeAddress> addresses;
        for (const profile::CodePlace& place : found.places) {
            if (place.module != id) continue;
            places.push_back(place);
            addresses.push_back(place.address);
        }
        const auto ranges = symbolizer.functions(module.identity, addresses);
        for (std::size_t i = 0; i < places.size(); ++i) {
            const std::uint64_t address = places[i].address.lookup();
            const auto known = std::ranges::find_if(
                copies, [&](const Copy& copy) { return copy.module == id && copy.contains(address); });
            if (known != copies.end()) {
                known->inlined = known->inlined && places[i].inlined;
                continue;
            }
            Copy copy{id, ranges[i], ranges[i].size != 0, places[i].inlined, {}, {}};
            if (!copy.named) copy.range = {{}, places[i].address.value, unnamed_bytes};
            copies.push_back(std::move(copy));
        }
    }
    return copies;
}

using Heat = std::map<profile::ModuleId, std::vector<profile::AddressRow>>;

void weigh(std::vector<Copy>& copies, const Heat& heat) {
    for (Copy& copy : copies)
        for (const profile::AddressRow& row : heat.at(copy.module))
            if (copy.contains(row.address.lookup())) {
                copy.self += row.self;
                copy.total += row.total;
            }
    std::ranges::sort(copies, {}, [](const Copy& copy) {
        return std::tuple(~copy.self.weight, ~copy.total.weight, copy.module, copy.range.start);
    });
    if (copies.size() > most_copies) copies.resize(most_copies);
}

// The part of a long function that is shown. It starts at a known instruction boundary: the function's first
// instruction, or one with samples.
struct Window {
    std::uint64_t start = 0, size = 0;
};

Window window_of(const Copy& copy, const std::vector<profile::AddressRow>& heat, const Asked& asked) {
    const std::uint64_t end = copy.range.start + copy.range.size;
    if (asked.from && copy.contains(*asked.from)) return {*asked.from, std::min(most_bytes, end - *asked.from)};
    if (copy.range.size <= most_bytes) return {copy.range.start, copy.range.size};
    const profile::AddressRow* hottest = nullptr;
    for (const profile::AddressRow& row : heat)
        if (copy.contains(row.address.value) && (hottest == nullptr || row.self.weight > hottest->self.weight))
            hottest = &row;
    std::uint64_t wanted = asked.at && copy.contains(*asked.at) ? *asked.at : hottest ? hottest->address.value : 0;
    wanted = wanted - copy.range.start > most_bytes / 2 ? wanted - most_bytes / 2 : copy.range.start;
    std::uint64_t start = copy.range.start;
    for (const profile::AddressRow& row : heat)
        if (copy.contains(row.address.value) && row.address.value >= wanted) {
            start = wanted == copy.range.start ? wanted : row.address.value;
            break;
        }
    return {start, std::min(most_bytes, end - start)};
}

// The texts of an answer, without duplicates. [0] is empty.
class Texts {
public:
    std::uint32_t add(const std::string& text) {
        const auto [at, added] = index_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
        if (added) texts_.push_back(text);
        return at->second;
    }
    [[nodiscard]] const std::vector<std::string>& all() const { return texts_; }

private:
    std::vector<std::string> texts_ = {""};
    std::unordered_map<std::string, std::uint32_t> index_ = {{"", 0}};
};

class Listing {
public:
    Listing(const symbol::ModuleIdentity& module, const Copy& copy, std::vector<symbol::Instruction> instructions,
            const std::vector<profile::AddressRow>& heat)
        : module_(module), copy_(copy), instructions_(std::move(instructions)) {
        weights_.resize(instructions_.size());
        totals_.resize(instructions_.size());
        for (const profile::AddressRow& row : heat)
            if (const std::size_t at = index_of(row.address.lookup()); at < instructions_.size()) {
                weights_[at] += row.self;
                totals_[at] += row.total;
            }
    }

    void resolve(symbol::Symbolizer& symbolizer) {
        std::vector<CodeAddress> addresses, targets;
        for (const symbol::Instruction& instruction : instructions_) {
            addresses.push_back({instruction.address, false});
            if (instruction.target && !copy_.contains(*instruction.target))
                targets.push_back({*instruction.target, false});
        }
        const symbol::Resolved resolved = symbolizer.resolve(module_, addresses);
        std::map<std::vector<std::uint32_t>, std::uint32_t> known;
        for (std::size_t i = 0; i < addresses.size(); ++i) {
            std::vector<std::uint32_t> place;
            for (std::uint32_t frame = resolved.first[i]; frame < resolved.first[i + 1]; ++frame) {
                const symbol::SourceFrame& source = resolved.frames[frame];
                place.push_back(texts_.add(resolved.strings[source.function]));
                place.push_back(texts_.add(resolved.strings[source.file]));
                place.push_back(source.line);
            }
            const auto [at, added] = known.try_emplace(place, static_cast<std::uint32_t>(places_.size()));
            if (added) places_.push_back(std::move(place));
            place_of_.push_back(at->second);
        }
        const auto functions = symbolizer.functions(module_, targets);
        for (std::size_t i = 0; i < targets.size(); ++i) {
            const symbol::FunctionRange& range = functions[i];
            if (range.size == 0) continue;
            const std::uint64_t inside = targets[i].value - range.start;
            target_names_[targets[i].value] =
                texts_.add(inside == 0 ? range.name : fmt::format("{}+{:#x}", range.name, inside));
        }
    }

    void write(JsonWriter& json) const {
        using symbol::Instruction;
        json.key("instructions");
        json.object();
        const auto column = [&](std::string_view name, auto value) {
            json.list(name, instructions_, [&](const Instruction& instruction) { json.number(value(instruction)); });
        };
        column("address", [](const Instruction& instruction) { return instruction.address; });
        column("size", [](const Instruction& instruction) { return instruction.size; });
        json.list("text", instructions_, [&](const Instruction& instruction) { json.text(instruction.text); });
        column("flow", [](const Instruction& instruction) { return static_cast<unsigned>(instruction.flow); });
        column("known", [](const Instruction& instruction) { return instruction.known ? 1u : 0u; });
        column("target", [&](const Instruction& instruction) { return target_of(instruction); });
        column("target_address", [](const Instruction& instruction) { return instruction.target.value_or(0); });
        column("target_name", [&](const Instruction& instruction) {
            const auto name = target_names_.find(instruction.target.value_or(0));
            return name == target_names_.end() ? 0u : name->second;
        });
        column("reference", [](const Instruction& instruction) { return instruction.reference.value_or(0); });
        json.list("place", place_of_, [&](std::uint32_t place) { json.number(place); });
        const auto weights = [&](std::string_view name, const std::vector<profile::Weight>& of, auto value) {
            json.list(name, of, [&](const profile::Weight& weight) { json.number(value(weight)); });
        };
        weights("self", weights_, [](const profile::Weight& weight) { return weight.weight; });
        weights("self_samples", weights_, [](const profile::Weight& weight) { return weight.samples; });
        weights("total", totals_, [](const profile::Weight& weight) { return weight.weight; });
        weights("total_samples", totals_, [](const profile::Weight& weight) { return weight.samples; });
        json.end_object();
        json.list("places", places_, [&](const std::vector<std::uint32_t>& place) {
            json.array();
            for (const std::uint32_t number : place) json.number(number);
            json.end_array();
        });
        json.texts("strings", texts_.all());
    }

    [[nodiscard]] std::uint64_t end() const {
        return instructions_.empty() ? 0 : instructions_.back().address + instructions_.back().size;
    }

private:
    // Index of the instruction that contains `address`. If there is none, the number of instructions.
    [[nodiscard]] std::size_t index_of(std::uint64_t address) const {
        const auto after = std::ranges::upper_bound(instructions_, address, {}, &symbol::Instruction::address);
        if (after == instructions_.begin()) return instructions_.size();
        const symbol::Instruction& found = *std::prev(after);
        if (address - found.address >= found.size) return instructions_.size();
        return static_cast<std::size_t>(after - instructions_.begin()) - 1;
    }

    // Index of the jump's target instruction. -1: it is not among those shown.
    [[nodiscard]] std::int64_t target_of(const symbol::Instruction& instruction) const {
        if (!instruction.target || instruction.flow == symbol::Flow::call) return -1;
        const std::size_t at = index_of(*instruction.target);
        return at < instructions_.size() ? static_cast<std::int64_t>(at) : -1;
    }

    const symbol::ModuleIdentity& module_;
    const Copy& copy_;
    const std::vector<symbol::Instruction> instructions_;
    std::vector<profile::Weight> weights_, totals_;
    std::vector<std::uint32_t> place_of_;
    std::vector<std::vector<std::uint32_t>> places_;  // function, file, line of each frame, innermost first
    std::unordered_map<std::uint64_t, std::uint32_t> target_names_;
    Texts texts_;
};

void write_copies(JsonWriter& json, const std::vector<Copy>& copies, const Found& found) {
    json.list("copies", copies, [&](const Copy& copy) {
        const ModuleNames& module = found.modules.at(copy.module);
        json.object();
        json.member("name", copy.range.name);
        json.member("module", module.name);
        json.member("build_id", to_hex(module.identity.build_id));
        json.member("address", copy.range.start);
        json.member("size", copy.range.size);
        json.member("inlined", copy.inlined);
        json.member("self", copy.self.weight);
        json.member("self_samples", copy.self.samples);
        json.member("total", copy.total.weight);
        json.end_object();
    });
}

std::size_t choose(const std::vector<Copy>& copies, const Asked& asked) {
    if (asked.at)
        for (std::size_t i = 0; i < copies.size(); ++i)
            if (copies[i].contains(*asked.at)) return i;
    return 0;
}

// Writes code, weights and notes of the selected copy.
void write_code(JsonWriter& json, const Copy& copy, const ModuleNames& module, const Asked& asked,
                const std::vector<profile::AddressRow>& heat, symbol::Symbolizer& symbolizer) {
    const Window window = window_of(copy, heat, asked);
    const symbol::ModuleCode code = symbolizer.code(module.identity, window.start, window.size);
    std::vector<symbol::Instruction> instructions;
    std::string problem = code.problem, remedy = code.remedy, note;
    if (problem.empty()) {
        auto decoded = symbol::disassemble(code.view(), most_bytes);
        if (decoded)
            instructions = std::move(*decoded);
        else
            problem = decoded.error().message;
    }
    Listing listing(module.identity, copy, std::move(instructions), heat);
    listing.resolve(symbolizer);
    const auto add_note = [&](std::string_view sentence) {
        note += fmt::format("{}{}", note.empty() ? "" : "; ", sentence);
    };
    if (problem.empty() && window.size < copy.range.size)
        add_note(fmt::format("{} of {} bytes of this function are shown", window.size, copy.range.size));
    if (problem.empty() && !copy.named)
        add_note(
            "no symbol covers this code: what follows the sampled address is shown, where the function begins and ends "
            "is "
            "not known");
    if (problem.empty() && module.identity.kind == symbol::ModuleKind::kernel)
        add_note("as linked: the running kernel patches some of its instructions");
    json.member("file", code.file);
    json.member("machine", code.machine);
    json.member("problem", problem);
    json.member("remedy", remedy);
    json.member("note", note);
    // Where the part before and the part after the shown one begin; 0 if there is none.
    const std::uint64_t end = listing.end();
    const bool more = problem.empty() && end != 0 && end < copy.range.start + copy.range.size;
    json.member("next", more ? end : 0);
    json.member("first", window.start > copy.range.start ? copy.range.start : 0);
    listing.write(json);
}

}  // namespace

Answer disasm_answer(const Session& session, const Request& request, symbol::Symbolizer& symbolizer) {
    const auto asked = parse_asked(request);
    if (!asked) return error_answer(asked.error());
    const Found found = session.read([&](const profile::Store& store) { return find_places(store, *asked); });
    std::vector<Copy> copies = copies_of(found, symbolizer);
    if (copies.empty())
        return error_answer(404, "not_found",
                            asked->function.empty()
                                ? std::string("no sampled code is known there: only functions with samples are shown")
                                : fmt::format("no sample of this session is in {:.200}", asked->function));
    const auto parameters = parse_view(request);
    if (!parameters) return error_answer(parameters.error());
    Heat heat;
    std::uint64_t version = 0;
    profile::Weight total;
    const std::uint64_t start_ns = session.status().start_ns();
    const auto view = session.read([&](const profile::Store& store) -> Result<views::View> {
        views::View resolved = TRY(resolve_view(*parameters, store, start_ns));
        for (const Copy& copy : copies)
            if (!heat.contains(copy.module))
                heat[copy.module] = profile::address_heat(store, resolved.filter, copy.module);
        for (const profile::Weight& slice : profile::histogram(store, resolved.filter, 1)) total += slice;
        version = store.version();
        return resolved;
    });
    if (!view) return error_answer(view.error());
    weigh(copies, heat);
    const std::size_t chosen = choose(copies, *asked);
    const Copy& copy = copies[chosen];
    JsonWriter json;
    json.object();
    write_head(json, ViewHead{session.id(), *view, version}, total);
    write_copies(json, copies, found);
    json.member("chosen", chosen);
    write_code(json, copy, found.modules.at(copy.module), *asked, heat.at(copy.module), symbolizer);
    json.end_object();
    return json_answer(json.take());
}

}  // namespace flamewire::server
