// docs/kept.proto: KeptSymbols.
#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "profile/symbols/symbol_cache.h"
#include "wire/frame.h"
#include "wire/proto.h"

namespace flamewire::profile {
namespace {

using wire::proto::Column;
using wire::proto::Field;
using wire::proto::Malformed;
using wire::proto::narrow;
using wire::proto::PackedColumn;
using wire::proto::pbf_reader;
using wire::proto::pbf_writer;
using wire::proto::Tag;

constexpr Tag strings_tag = 1, modules_tag = 2;

// Far above what a session needs, and far below what would exhaust memory. max_frames is for all modules together.
constexpr std::size_t max_modules = std::size_t{1} << 16, max_strings = std::size_t{1} << 22,
                      max_addresses = std::size_t{1} << 22, max_frames = std::size_t{1} << 23;
constexpr std::uint32_t max_frames_of_address = 1'000;

// C: PackedColumn when it is written, Column when it was read.
template <class C>
struct ModuleMessage {
    symbol::ModuleIdentity identity;
    symbol::ModuleReport report;
    C address_delta, return_address, frame_count;  // of the addresses
    C function, source_file, line, inlined;        // of the frames
};

// Indexed by the numbers in docs/kept.proto, which must not change. go_table is last because it was added last.
constexpr std::array qualities = {
    symbol::Quality::none,    symbol::Quality::linker_map, symbol::Quality::dynamic_symbols,
    symbol::Quality::symbols, symbol::Quality::debug_info, symbol::Quality::go_table};

}  // namespace
}  // namespace flamewire::profile

namespace flamewire::wire::proto {

template <>
struct EnumNumbers<symbol::ModuleKind> : NumbersUpTo<symbol::ModuleKind::jit> {};
template <>
struct EnumNumbers<symbol::FoundBy> : NumbersUpTo<symbol::FoundBy::debuginfod> {};
template <>
struct EnumNumbers<symbol::Quality> {
    static std::uint64_t of(symbol::Quality quality) {
        return static_cast<std::uint64_t>(std::ranges::find(profile::qualities, quality) - profile::qualities.begin());
    }
    static symbol::Quality enumerator(std::uint64_t number) {
        return number < profile::qualities.size() ? profile::qualities[static_cast<std::size_t>(number)]
                                                  : symbol::Quality::none;
    }
};

template <class C>
inline constexpr std::tuple fields<profile::ModuleMessage<C>>{
    Field{1, [](auto& module) -> auto& { return module.identity.kind; }},
    Field{2, [](auto& module) -> auto& { return module.identity.path; }},
    Field{3, [](auto& module) -> auto& { return module.identity.build_id; }},
    Field{4, [](auto& module) -> auto& { return module.identity.boot_id; }},
    Field{5, [](auto& module) -> auto& { return module.identity.size; }},
    Field{6, [](auto& module) -> auto& { return module.identity.mtime_ns; }},
    Field{7, [](auto& module) -> auto& { return module.report.quality; }},
    Field{8, [](auto& module) -> auto& { return module.report.file; }},
    Field{9, [](auto& module) -> auto& { return module.report.found; }},
    Field{10, [](auto& module) -> auto& { return module.report.debug_file; }},
    Field{11, [](auto& module) -> auto& { return module.report.debug_found; }},
    Field{12, [](auto& module) -> auto& { return module.report.map_file; }},
    Field{13, [](auto& module) -> auto& { return module.report.problem; }},
    Field{14, [](auto& module) -> auto& { return module.report.remedy; }},
    Field{20, &profile::ModuleMessage<C>::address_delta, profile::max_addresses},
    Field{21, &profile::ModuleMessage<C>::return_address, profile::max_addresses},
    Field{22, &profile::ModuleMessage<C>::frame_count, profile::max_addresses},
    Field{23, &profile::ModuleMessage<C>::function, profile::max_frames},
    Field{24, &profile::ModuleMessage<C>::source_file, profile::max_frames},
    Field{25, &profile::ModuleMessage<C>::line, profile::max_frames},
    Field{26, &profile::ModuleMessage<C>::inlined, profile::max_frames, true}};

}  // namespace flamewire::wire::proto

namespace flamewire::profile {
namespace {

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

ModuleMessage<PackedColumn> message_of(const CachedModule& module, Strings& strings) {
    ModuleMessage<PackedColumn> message{module.identity, module.report, {}, {}, {}, {}, {}, {}, {}};
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < module.addresses.size(); ++i) {
        const CodeAddress& address = module.addresses[i];
        message.address_delta.add(address.value - before);
        before = address.value;
        message.return_address.add(address.return_address ? 1 : 0);
        message.frame_count.add(module.frames.first[i + 1] - module.frames.first[i]);
    }
    for (const symbol::SourceFrame& frame : module.frames.frames) {
        message.function.add(strings.id(module.frames.strings[frame.function]));
        message.source_file.add(strings.id(module.frames.strings[frame.file]));
        message.line.add(frame.line);
        message.inlined.add(frame.inlined ? 1 : 0);
    }
    return message;
}

void put_addresses(CachedModule& module, const ModuleMessage<Column>& columns) {
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
void put_frames(CachedModule& module, const ModuleMessage<Column>& columns, const std::vector<std::string>& strings) {
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
    ModuleMessage<Column> columns;
    wire::proto::read_fields(in, columns);
    CachedModule module{std::move(columns.identity), std::move(columns.report), {}, {}};
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
        pbf_writer writer(one);
        wire::proto::write(writer, message_of(module, strings));
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
        pbf_writer(body).add_message(modules_tag, one);
    }
    std::string message;
    pbf_writer out(message);
    for (const std::string* text : strings.in_order()) out.add_bytes(strings_tag, *text);
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
            if (in.tag_and_type() == wire::proto::bytes(strings_tag))
                wire::proto::read_value(in, max_strings, strings);
            else if (in.tag_and_type() == wire::proto::bytes(modules_tag))
                wire::proto::append(messages, max_modules) = in.get_message();
            else
                in.skip();
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
