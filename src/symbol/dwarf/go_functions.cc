#include "symbol/dwarf/go_functions.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace flamewire::symbol {
namespace {

// Go's compiler inlines at most a few dozen levels. More means a loop in a damaged table.
constexpr std::size_t most_inlined = 256;
constexpr std::uint64_t page_bytes = 4096;

// Reads whole pages of a file and caches them, because a binary search reads a few bytes at a time, again and again.
class KeptPages {
public:
    explicit KeptPages(elf::ByteSource source) : source_(std::move(source)) {}

    bool read(std::uint64_t offset, std::span<std::byte> out) {
        while (!out.empty()) {
            const std::string& page = page_at(offset / page_bytes);
            const auto skipped = static_cast<std::size_t>(offset % page_bytes);
            if (skipped >= page.size()) return false;
            const std::size_t size = std::min(out.size(), page.size() - skipped);
            std::memcpy(out.data(), page.data() + skipped, size);
            out = out.subspan(size);
            offset += size;
        }
        return true;
    }

private:
    const std::string& page_at(std::uint64_t number) {
        if (number == last_) return *last_page_;
        auto kept = pages_.find(number);
        if (kept == pages_.end())
            kept = pages_.emplace(number, source_(number * page_bytes, page_bytes).value_or(std::string())).first;
        last_ = number;
        last_page_ = &kept->second;
        return kept->second;
    }

    elf::ByteSource source_;
    std::unordered_map<std::uint64_t, std::string> pages_;
    std::uint64_t last_ = ~std::uint64_t{0};
    const std::string* last_page_ = nullptr;
};
}  // namespace

std::unique_ptr<GoFunctions> GoFunctions::open(const ObjectFile& file, StringPool& strings) {
    const elf::ByteSource source = file.source();
    const auto sections = elf::read_sections(source, file.header());
    if (!sections) return nullptr;
    const auto place = elf::find_go_pclntab(source, file.header(), *sections);
    if (!place) return nullptr;
    const auto pages = std::make_shared<KeptPages>(source);
    const auto read = [pages](std::uint64_t offset, std::span<std::byte> out) { return pages->read(offset, out); };
    auto table = elf::open_go_pclntab(read, file.header().big_endian, *place);
    if (!table) return nullptr;
    std::unique_ptr<GoFunctions> functions(new GoFunctions(std::move(*table), strings));
    const auto module = elf::find_go_module(source, file.header(), *sections, *place);
    if (!module) return functions;
    functions->function_data_ = [pages, sections = *sections, start = module->function_data](std::uint64_t offset,
                                                                                             std::span<std::byte> out) {
        const auto at = elf::offset_of_address(sections, start + offset, out.size());
        return at && pages->read(*at, out);
    };
    return functions;
}

std::optional<GoFunctions::Function> GoFunctions::function(std::uint64_t vaddr) const {
    const auto found = table_.function_at(vaddr);
    if (!found) return std::nullopt;
    const std::uint64_t end = table_.code_end(*found);
    std::string name = table_.name_of(*found);
    if (vaddr >= end || name.empty()) return std::nullopt;
    return Function{found->start, end, std::move(name)};
}

void GoFunctions::add_line(const elf::GoPclntab::Function& function, std::uint64_t vaddr, IndexedFrame& frame) {
    const auto file = table_.value_at(function.file, function, vaddr);
    const auto line = table_.value_at(function.line, function, vaddr);
    if (!file || !line || line->value <= 0) return;
    frame.file = strings_.intern(table_.file_name(function, file->value));
    if (frame.file != 0) frame.line = static_cast<std::uint32_t>(line->value);
}

// Like runtime.CallersFrames: the line is that of the address. The line of a caller is that of an instruction which the
// compiler left at the call.
void GoFunctions::find(std::uint64_t vaddr, std::vector<IndexedFrame>& frames) {
    const auto function = table_.function_at(vaddr);
    if (!function || vaddr >= table_.code_end(*function)) return;
    const std::uint32_t name = strings_.intern(table_.name_of(*function));
    if (name == 0) return;
    const std::size_t first = frames.size();
    std::uint64_t at = vaddr;
    while (function_data_) {
        const auto call = table_.inlined_call(*function, at, function_data_);
        if (!call) break;
        if (frames.size() - first == most_inlined) {
            frames.resize(first);
            at = vaddr;
            break;
        }
        IndexedFrame& frame = frames.emplace_back();
        frame.function = strings_.intern(table_.name_at(call->name));
        frame.inlined = true;
        add_line(*function, at, frame);
        at = call->caller;
    }
    IndexedFrame& frame = frames.emplace_back();
    frame.function = name;
    add_line(*function, at, frame);
}

}  // namespace flamewire::symbol
