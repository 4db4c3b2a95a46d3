// docs/kept.proto: KeptSymbols.
#include <protozero/pbf_writer.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "profile/symbols/symbol_cache.h"
#include "wire/batch_read.h"
#include "wire/frame.h"

namespace flamewire::profile {
namespace {

using wire::read::bytes;
using wire::read::get_text;
using wire::read::Malformed;
using wire::read::narrow;
using wire::read::pbf_reader;
using wire::read::varint;
using Tag = std::uint32_t;

// Indexed by the numbers in docs/kept.proto, which must not change. go_table is last because it was added last.
constexpr std::array qualities = {
    symbol::Quality::none,    symbol::Quality::linker_map, symbol::Quality::dynamic_symbols,
    symbol::Quality::symbols, symbol::Quality::debug_info, symbol::Quality::go_table};

namespace file_field {
constexpr Tag strings = 1, modules = 2;
}
namespace module_field {
constexpr Tag kind = 1, path = 2, build_id = 3, boot_id = 4, size = 5, mtime_ns = 6, quality = 7, file = 8, found = 9,
              debug_file = 10, debug_found = 11, map_file = 12, problem = 13, remedy = 14;
constexpr Tag address_delta = 20, return_address = 21, frame_count = 22, function = 23, source_file = 24, line = 25,
              inlined = 26;
}  // namespace module_field

// Far above what a session needs, and far below what would exhaust memory. max_frames is for all modules together.
constexpr std::size_t max_modules = std::size_t{1} << 16, max_strings = std::size_t{1} << 22,
                      max_addresses = std::size_t{1} << 22, max_frames = std::size_t{1} << 23;
constexpr std::uint32_t max_frames_of_address = 1'000;

class Strings {
public:
    std::uint32_t id(const std::string& text) {
        if (text.empty()) return 0;
        const auto [entry, added] = ids_.try_emplace(text, static_cast<std::uint32_t>(order_.size() + 1));
        if (added) order_.push_back(&entry->first);
        return entry->second;
    }
    [[nodiscard]] const std::vector<const std::string*>& in_order() const { return order_; }
    // Removes those that were added after the first `count`.
    void forget_from(std::size_t count) {
        for (; order_.size() > count; order_.pop_back()) ids_.erase(ids_.find(*order_.back()));
    }

private:
    std::unordered_map<std::string, std::uint32_t> ids_;
    std::vector<const std::string*> order_;
};

void put_about(protozero::pbf_writer& out, const CachedModule& module) {
    const auto text = [&](Tag tag, const std::string& value) {
        if (!value.empty()) out.add_bytes(tag, value);
    };
    const auto number = [&](Tag tag, std::uint64_t value) {
        if (value != 0) out.add_uint64(tag, value);
    };
    number(module_field::kind, static_cast<std::uint64_t>(module.identity.kind));
    text(module_field::path, module.identity.path);
    text(module_field::build_id, module.identity.build_id);
    text(module_field::boot_id, module.identity.boot_id);
    number(module_field::size, module.identity.size);
    if (module.identity.mtime_ns != 0) out.add_int64(module_field::mtime_ns, module.identity.mtime_ns);
    const auto quality = std::ranges::find(qualities, module.report.quality);
    number(module_field::quality, static_cast<std::uint64_t>(quality - qualities.begin()));
    text(module_field::file, module.report.file);
    number(module_field::found, static_cast<std::uint64_t>(module.report.found));
    text(module_field::debug_file, module.report.debug_file);
    number(module_field::debug_found, static_cast<std::uint64_t>(module.report.debug_found));
    text(module_field::map_file, module.report.map_file);
    text(module_field::problem, module.report.problem);
    text(module_field::remedy, module.report.remedy);
}

template <class List, class Value>
void put_column(protozero::pbf_writer& out, Tag tag, const List& list, Value value) {
    protozero::packed_field_uint64 column(out, tag);
    for (std::size_t i = 0; i < list.size(); ++i) column.add_element(value(i));
}

void put_frames(protozero::pbf_writer& out, const CachedModule& module, Strings& strings) {
    const auto& addresses = module.addresses;
    const auto& frames = module.frames.frames;
    put_column(out, module_field::address_delta, addresses,
               [&](std::size_t i) { return addresses[i].value - (i == 0 ? 0 : addresses[i - 1].value); });
    put_column(out, module_field::return_address, addresses,
               [&](std::size_t i) { return std::uint64_t{addresses[i].return_address}; });
    put_column(out, module_field::frame_count, addresses,
               [&](std::size_t i) { return std::uint64_t{module.frames.first[i + 1]} - module.frames.first[i]; });
    const auto text = [&](std::uint32_t id) { return std::uint64_t{strings.id(module.frames.strings[id])}; };
    put_column(out, module_field::function, frames, [&](std::size_t i) { return text(frames[i].function); });
    put_column(out, module_field::source_file, frames, [&](std::size_t i) { return text(frames[i].file); });
    put_column(out, module_field::line, frames, [&](std::size_t i) { return std::uint64_t{frames[i].line}; });
    if (std::ranges::any_of(frames, &symbol::SourceFrame::inlined))
        put_column(out, module_field::inlined, frames, [&](std::size_t i) { return std::uint64_t{frames[i].inlined}; });
}

using Column = std::vector<std::uint64_t>;

void read_column(pbf_reader& in, Column& column, std::size_t limit) {
    for (const std::uint64_t value : in.get_packed_uint64()) wire::read::append(column, limit) = value;
}

template <class Enum>
Enum known(std::uint64_t value, Enum last) {
    return value <= static_cast<std::uint64_t>(last) ? static_cast<Enum>(value) : Enum{};
}

struct Columns {
    Column address_delta, return_address, frame_count, function, source_file, line, inlined;
};

// Reads everything of a module except its frames. Their columns become values when their lengths are known.
void read_field(pbf_reader& in, CachedModule& module, Columns& columns) {
    namespace f = module_field;
    switch (in.tag_and_type()) {
        case varint(f::kind):
            module.identity.kind = known(in.get_uint64(), symbol::ModuleKind::jit);
            break;
        case bytes(f::path):
            module.identity.path = get_text(in);
            break;
        case bytes(f::build_id):
            module.identity.build_id = get_text(in);
            break;
        case bytes(f::boot_id):
            module.identity.boot_id = get_text(in);
            break;
        case varint(f::size):
            module.identity.size = in.get_uint64();
            break;
        case varint(f::mtime_ns):
            module.identity.mtime_ns = in.get_int64();
            break;
        case varint(f::quality):
            if (const std::uint64_t value = in.get_uint64(); value < qualities.size())
                module.report.quality = qualities[static_cast<std::size_t>(value)];
            break;
        case bytes(f::file):
            module.report.file = get_text(in);
            break;
        case varint(f::found):
            module.report.found = known(in.get_uint64(), symbol::FoundBy::debuginfod);
            break;
        case bytes(f::debug_file):
            module.report.debug_file = get_text(in);
            break;
        case varint(f::debug_found):
            module.report.debug_found = known(in.get_uint64(), symbol::FoundBy::debuginfod);
            break;
        case bytes(f::map_file):
            module.report.map_file = get_text(in);
            break;
        case bytes(f::problem):
            module.report.problem = get_text(in);
            break;
        case bytes(f::remedy):
            module.report.remedy = get_text(in);
            break;
        case bytes(f::address_delta):
            read_column(in, columns.address_delta, max_addresses);
            break;
        case bytes(f::return_address):
            read_column(in, columns.return_address, max_addresses);
            break;
        case bytes(f::frame_count):
            read_column(in, columns.frame_count, max_addresses);
            break;
        case bytes(f::function):
            read_column(in, columns.function, max_frames);
            break;
        case bytes(f::source_file):
            read_column(in, columns.source_file, max_frames);
            break;
        case bytes(f::line):
            read_column(in, columns.line, max_frames);
            break;
        case bytes(f::inlined):
            read_column(in, columns.inlined, max_frames);
            break;
        default:
            in.skip();
    }
}

void put_addresses(CachedModule& module, const Columns& columns) {
    const std::size_t count = columns.address_delta.size();
    if (columns.return_address.size() != count || columns.frame_count.size() != count)
        throw Malformed{"columns of different lengths"};
    std::uint64_t vaddr = 0;
    std::size_t frames = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const CodeAddress address{vaddr + columns.address_delta[i], columns.return_address[i] != 0};
        // A delta that overflows leads back, too.
        if (i > 0 && address <= module.addresses.back()) throw Malformed{"addresses that do not ascend"};
        if (columns.frame_count[i] == 0 || columns.frame_count[i] > max_frames_of_address)
            throw Malformed{"an address without frames, or with too many"};
        vaddr = address.value;
        module.addresses.push_back(address);
        module.frames.first.push_back(narrow(frames));
        frames += columns.frame_count[i];
    }
    module.frames.first.push_back(narrow(frames));
    const bool one_length = columns.function.size() == frames && columns.source_file.size() == frames &&
                            columns.line.size() == frames &&
                            (columns.inlined.empty() || columns.inlined.size() == frames);
    if (!one_length) throw Malformed{"columns of different lengths"};
}

// Each module gets its own texts, like a symbolizer's answer.
void put_frames(CachedModule& module, const Columns& columns, const std::vector<std::string>& strings) {
    std::unordered_map<std::uint64_t, std::uint32_t> numbers{{0, 0}};
    module.frames.strings.emplace_back();
    const auto text = [&](std::uint64_t id) {
        if (id > strings.size()) throw Malformed{"a text that does not exist"};
        const auto [entry, added] = numbers.try_emplace(id, narrow(module.frames.strings.size()));
        if (added) module.frames.strings.push_back(strings[id - 1]);
        return entry->second;
    };
    module.frames.frames.reserve(columns.function.size());
    for (std::size_t i = 0; i < columns.function.size(); ++i)
        module.frames.frames.push_back({text(columns.function[i]), text(columns.source_file[i]),
                                        narrow(columns.line[i]), !columns.inlined.empty() && columns.inlined[i] != 0});
}

CachedModule read_module(pbf_reader in, const std::vector<std::string>& strings, std::size_t& text_budget,
                         std::size_t& frame_budget) {
    CachedModule module;
    Columns columns;
    while (in.next()) read_field(in, module, columns);
    if (columns.function.size() > frame_budget) throw Malformed{"more frames than a session has"};
    frame_budget -= columns.function.size();
    put_addresses(module, columns);
    put_frames(module, columns, strings);
    // A hostile file could refer to one long text from every module, and each reference makes a copy.
    for (const std::string& text : module.frames.strings) {
        if (text.size() > text_budget) throw Malformed{"more text than the file has"};
        text_budget -= text.size();
    }
    return module;
}

}  // namespace

EncodedSymbolCache encode_symbol_cache(std::span<const CachedModule> modules) {
    EncodedSymbolCache encoded;
    Strings strings;
    std::string body;
    std::size_t text_bytes = 0, frames = 0;
    constexpr std::size_t overhead = 16;  // per entry, at most
    for (const CachedModule& module : modules) {
        const std::size_t texts = strings.in_order().size();
        std::string one;
        protozero::pbf_writer out(one);
        put_about(out, module);
        put_frames(out, module, strings);
        std::size_t added = 0;
        for (std::size_t i = texts; i < strings.in_order().size(); ++i)
            added += strings.in_order()[i]->size() + overhead;
        frames += module.frames.frames.size();
        if (body.size() + one.size() + overhead + text_bytes + added > max_symbol_cache_bytes || frames > max_frames) {
            frames -= module.frames.frames.size();
            strings.forget_from(texts);
            ++encoded.left_out;
            continue;
        }
        text_bytes += added;
        protozero::pbf_writer(body).add_message(file_field::modules, one);
    }
    std::string message;
    protozero::pbf_writer out(message);
    for (const std::string* text : strings.in_order()) out.add_bytes(file_field::strings, *text);
    message += body;
    encoded.bytes = wire::compress(message);
    return encoded;
}

Result<std::vector<CachedModule>> decode_symbol_cache(Bytes compressed) {
    const std::string message = TRY(wire::decompress(compressed, max_symbol_cache_bytes));
    try {
        std::vector<std::string> strings;
        std::vector<pbf_reader> messages;
        pbf_reader in(message);
        while (in.next()) {
            switch (in.tag_and_type()) {
                case bytes(file_field::strings):
                    wire::read::append(strings, max_strings) = get_text(in);
                    break;
                case bytes(file_field::modules):
                    wire::read::append(messages, max_modules) = in.get_message();
                    break;
                default:
                    in.skip();
            }
        }
        std::vector<CachedModule> modules;
        std::size_t text_budget = 2 * max_symbol_cache_bytes, frame_budget = max_frames;
        modules.reserve(messages.size());
        for (const pbf_reader& one : messages) modules.push_back(read_module(one, strings, text_budget, frame_budget));
        return modules;
    } catch (const Malformed& malformed) {
        return fail(ErrorCode::invalid, std::string("the kept symbols are damaged: ") + malformed.what);
    } catch (const protozero::exception& error) {
        return fail(ErrorCode::invalid, std::string("the kept symbols are damaged: ") + error.what());
    }
}

}  // namespace flamewire::profile
