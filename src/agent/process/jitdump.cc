#include "agent/process/jitdump.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "base/system.h"

namespace flamewire::agent {
namespace {

constexpr std::uint32_t magic = 0x4A69'5444;  // "JiTD" in the byte order of the writing machine
constexpr std::size_t header_bytes = 40, prefix_bytes = 16;
constexpr std::uint64_t processor_clock = 1;  // flag in the header: times are from the processor's counter
constexpr std::size_t window_bytes = 64 * 1024;
constexpr std::size_t max_lines_bytes = 1024 * 1024, max_rows = 4096;
// V8 adds the size of an ELF header to each address in its line tables.
constexpr std::uint64_t elf_header_bytes = 64;

// Limit for an .eh_frame. Compilers write a few dozen bytes.
constexpr std::uint64_t max_frame_bytes = std::uint64_t{64} * 1024;
// An .eh_frame is relative to an address after the code, at this alignment from its start (perf's genelf.c).
constexpr std::uint64_t frame_alignment = 8;

enum RecordKind : std::uint32_t { code_load = 0, code_move = 1, code_debug_info = 2, code_unwinding_info = 4 };

struct Load {
    std::uint64_t code = 0, size = 0;
};
// pid, tid, vma, code address, code size, code index; then the name and the code.
constexpr std::size_t load_bytes = 40;
Load read_load(ByteReader& in) {
    in.skip(16);
    Load load;
    load.code = in.u64();
    load.size = in.u64();
    in.skip(8);
    return load;
}

std::string text_up_to_nul(Bytes bytes) {
    const std::string_view text = as_text(bytes);
    return std::string(text.substr(0, std::min(text.find('\0'), max_jit_name_bytes)));
}

}  // namespace

bool is_jitdump_name(std::string_view path) {
    constexpr std::string_view begin = "jit-", end = ".dump";
    path.remove_prefix(path.rfind('/') + 1);
    if (!path.starts_with(begin) || !path.ends_with(end) || path.size() <= begin.size() + end.size()) return false;
    path.remove_prefix(begin.size());
    path.remove_suffix(end.size());
    return path.find_first_not_of("0123456789") == std::string_view::npos;
}

Bytes JitdumpFile::at(std::uint64_t offset, std::size_t size) {
    if (offset < window_offset_ || offset + size > window_offset_ + window_.size()) {
        window_offset_ = offset;
        if (!read_piece(file_.get(), offset, window_bytes, window_)) window_.clear();
    }
    const auto begin = static_cast<std::size_t>(offset - window_offset_);
    return as_bytes_view(window_).subspan(begin, std::min(size, window_.size() - begin));
}

bool JitdumpFile::read_header() {
    ByteReader in(at(0, header_bytes));
    const auto found = in.u32();
    const auto version = in.u32();
    const auto size = in.u32();
    arch_ = unwind::arch_of_machine(in.u32());
    in.skip(16);
    const auto flags = in.u64();
    if (!in.ok() || found != magic || version == 0 || size < header_bytes) return false;
    own_clock_ = (flags & processor_clock) == 0;
    position_ = size;
    return true;
}

JitProgress JitdumpFile::advance(std::size_t limit, const PollTimes& times, std::vector<JitEntry>& entries) {
    FileStatus file;
    if (System::current().status_of(file_.get(), file) != 0) return JitProgress::damaged;
    const std::uint64_t size = file.size_bytes;
    if (size < position_) return JitProgress::rewritten;
    window_.clear();  // its end may have been incomplete
    if (position_ == 0 && size < header_bytes) return JitProgress::at_end;
    if (position_ == 0 && !read_header()) return JitProgress::damaged;
    const std::uint64_t written_ns = times.monotonic_of(file.modified_ns);
    for (std::size_t done = 0; position_ < size && size - position_ >= prefix_bytes;
         done += prefix_bytes + load_bytes) {
        if (done >= limit) return JitProgress::more;
        ByteReader in(at(position_, prefix_bytes));
        const auto kind = in.u32();
        const auto record_bytes = in.u32();
        const auto time_ns = in.u64();
        if (!in.ok()) break;
        if (record_bytes < prefix_bytes) return JitProgress::damaged;
        if (record_bytes > size - position_) break;  // still being written
        const Bytes fields = at(position_ + prefix_bytes, std::min<std::size_t>(record_bytes - prefix_bytes, 64));
        // A time in the future is invalid.
        take_record(kind, own_clock_ && time_ns <= times.now_ns ? time_ns : written_ns, fields, entries);
        position_ += record_bytes;
    }
    return JitProgress::at_end;
}

void JitdumpFile::take_record(std::uint32_t kind, std::uint64_t from_ns, Bytes fields, std::vector<JitEntry>& entries) {
    ByteReader in(fields);
    if (kind == code_debug_info) {
        lines_code_ = in.u64();
        lines_record_ = in.ok() ? position_ : 0;
    } else if (kind == code_load) {
        const Load load = read_load(in);
        const std::uint64_t lines = lines_code_ == load.code ? lines_record_ : 0;
        const std::uint64_t unwinding = std::exchange(unwinding_record_, 0);
        lines_record_ = 0;
        if (in.ok() && load.size != 0 && load.code + load.size > load.code)
            entries.push_back({load.code, load.code + load.size, from_ns, position_, lines, unwinding, 0});
    } else if (kind == code_unwinding_info) {
        unwinding_record_ = position_;
    } else if (kind == code_move) {
        in.skip(16);
        const auto old_code = in.u64();
        const auto new_code = in.u64();
        const auto code_size = in.u64();
        if (in.ok() && old_code != 0 && code_size != 0 && new_code + code_size > new_code)
            entries.push_back({new_code, new_code + code_size, from_ns, 0, 0, 0, old_code});
    }
}

std::optional<JitBody> JitdumpFile::body_of(std::uint64_t record, std::uint64_t lines, std::uint64_t unwinding) const {
    std::string bytes;
    if (!read_piece(file_.get(), record + prefix_bytes, load_bytes + max_jit_name_bytes, bytes)) return std::nullopt;
    ByteReader in(as_bytes_view(bytes));
    const Load load = read_load(in);
    if (!in.ok()) return std::nullopt;
    JitBody body{load.code, text_up_to_nul(in.bytes(in.remaining())), {}, {}, {}};
    if (body.name.empty()) return std::nullopt;
    if (lines != 0) add_lines(lines, body);
    if (unwinding != 0) add_rules(unwinding, load.size, body);
    return body;
}

// Fields: size of the data, of its .eh_frame_hdr, and of the mapped part (0: no .eh_frame). The data is the .eh_frame
// followed by the .eh_frame_hdr. The specification states the opposite order, but perf and all writers use this one.
void JitdumpFile::add_rules(std::uint64_t unwinding, std::uint64_t size, JitBody& body) const {
    constexpr std::size_t head_bytes = prefix_bytes + 24;
    std::string head, frames;
    if (!arch_ || !read_piece(file_.get(), unwinding, head_bytes, head)) return;
    ByteReader in(as_bytes_view(head));
    in.skip(4);
    const auto record_bytes = in.u32();
    in.skip(8);
    const auto data_bytes = in.u64();
    const auto search_table_bytes = in.u64();
    const auto mapped_bytes = in.u64();
    if (!in.ok() || mapped_bytes == 0 || record_bytes < head_bytes || data_bytes > record_bytes - head_bytes ||
        search_table_bytes > data_bytes)
        return;
    const std::uint64_t frame_bytes = data_bytes - search_table_bytes;
    if (frame_bytes > max_frame_bytes ||
        !read_piece(file_.get(), unwinding + head_bytes, static_cast<std::size_t>(frame_bytes), frames) ||
        frames.size() != frame_bytes)
        return;
    const std::uint64_t end = body.start + size;
    const std::uint64_t frame_address = end + (0 - size) % frame_alignment;
    body.rules = unwind::FunctionRules(as_bytes_view(frames), frame_address, body.start, end, *arch_);
}

// Rows: address, line, discriminator, file name; the name "\xff" means the one before.
void JitdumpFile::add_lines(std::uint64_t lines, JitBody& body) const {
    std::string bytes;
    if (!read_piece(file_.get(), lines, max_lines_bytes, bytes)) return;
    ByteReader prefix(as_bytes_view(bytes));
    prefix.skip(4);
    const auto record_bytes = prefix.u32();
    ByteReader in(as_bytes_view(bytes).first(std::min<std::size_t>(record_bytes, bytes.size())));
    in.skip(prefix_bytes);
    const auto code = in.u64();
    const auto count = in.u64();
    std::uint64_t base = code;
    for (std::uint64_t i = 0; i < count && in.ok() && body.rows.size() < max_rows; ++i) {
        const auto address = in.u64();
        const auto line = in.u32();
        in.skip(4);
        const std::string_view file = in.c_string();
        if (!in.ok()) break;
        if (i == 0 && address == code + elf_header_bytes) base += elf_header_bytes;
        // V8 18 to 20 occasionally writes a corrupt table: a row out of order, or a name that is not text, ends it.
        const std::uint64_t offset = address - base;
        if (offset > UINT32_MAX || (!body.rows.empty() && offset < body.rows.back().offset)) break;
        const bool same_file = file == "\xff" || (!body.files.empty() && body.files.back() == file);
        if (!same_file) {
            const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
            if (file.empty() || file.size() > max_jit_name_bytes || std::ranges::any_of(file, is_control)) break;
            body.files.emplace_back(file);
        }
        if (body.files.empty()) break;
        const auto file_index = static_cast<std::uint32_t>(body.files.size() - 1);
        body.rows.push_back({static_cast<std::uint32_t>(offset), line, file_index});
    }
}

}  // namespace flamewire::agent
