#include "symbol/dwarf/line_program.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "base/byte_reader.h"
#include "symbol/dwarf/abbreviations.h"

namespace flamewire::symbol {
namespace {

constexpr std::size_t max_path_bytes = 4096;  // PATH_MAX

// Empty if there is no zero byte within the length of a path.
std::string_view text_of(Bytes bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), max_path_bytes));
    const std::size_t end = text.find('\0');
    return end == std::string_view::npos ? std::string_view{} : text.substr(0, end);
}

Bytes from(Bytes bytes, std::uint64_t offset) {
    return offset > bytes.size() ? Bytes{} : bytes.subspan(static_cast<std::size_t>(offset));
}

// The header of a line program.
struct Header {
    UnitFormat format;
    std::uint8_t instruction_bytes = 1, operations = 1;  // bytes of the shortest one; operations per instruction (VLIW)
    std::int8_t line_base = 0;
    std::uint8_t line_range = 1;
    std::uint8_t opcode_base = 1;
    Bytes operand_counts;  // by standard opcode, starting at 1
};

class LineRun {
public:
    LineRun(const LineSections& sections, Bytes unit, IndexBudget& budget)
        : sections_(sections), unit_(unit), in_(unit, byte_order(sections.big_endian)), budget_(budget) {}

    // False: the program is malformed or too large.
    bool run(LineProgram& program) {
        program_ = &program;
        if (!read_header()) return false;
        while (in_.ok() && in_.remaining() > 0)
            if (!step()) return false;
        if (!in_.ok()) return false;
        // Drop the rows after the last end_sequence, because they have no end.
        program.rows.resize(sequence_);
        const auto order = [](const LineRow& a, const LineRow& b) {
            if (a.address != b.address) return a.address < b.address;
            return a.file == LineRow::end_of_sequence && b.file != LineRow::end_of_sequence;
        };
        if (!std::ranges::is_sorted(program.rows, order)) std::ranges::stable_sort(program.rows, order);
        program.rows.shrink_to_fit();
        return true;
    }

private:
    bool read_header() {
        UnitFormat& format = header_.format;
        format.big_endian = sections_.big_endian;
        std::uint64_t length = in_.number(4);
        if (length == 0xffffffff) {
            length = in_.number(8);
            format.offset_size = 8;
        }
        if (!in_.ok() || length > in_.remaining() || !budget_.take(length)) return false;
        const std::size_t begin = in_.position();
        unit_ = unit_.first(begin + static_cast<std::size_t>(length));
        in_ = ByteReader(unit_, byte_order(sections_.big_endian));
        in_.seek(begin);
        format.version = static_cast<std::uint16_t>(in_.number(2));
        if (format.version < 2 || format.version > 5) return false;
        if (format.version >= 5) {
            format.address_size = static_cast<std::uint8_t>(in_.number(1));
            in_.skip(1);  // the size of segment selectors
        }
        const std::uint64_t header_length = in_.number(format.offset_size);
        if (!in_.ok() || header_length > in_.remaining()) return false;
        const std::size_t program = in_.position() + static_cast<std::size_t>(header_length);
        header_.instruction_bytes = static_cast<std::uint8_t>(in_.number(1));
        if (format.version >= 4) header_.operations = static_cast<std::uint8_t>(in_.number(1));
        in_.skip(1);  // default_is_stmt
        header_.line_base = static_cast<std::int8_t>(in_.number(1));
        header_.line_range = static_cast<std::uint8_t>(in_.number(1));
        header_.opcode_base = static_cast<std::uint8_t>(in_.number(1));
        if (!in_.ok() || header_.operations == 0 || header_.opcode_base == 0) return false;
        const std::size_t counts = in_.position();
        in_.skip(header_.opcode_base - 1);
        if (!in_.ok()) return false;
        header_.operand_counts = unit_.subspan(counts, header_.opcode_base - std::size_t{1});
        if (!(format.version >= 5 ? read_tables() : read_old_tables())) return false;
        in_.seek(program);
        return in_.ok();
    }

    // A string that is in the header itself.
    Bytes read_text() {
        const Bytes text = unit_.subspan(in_.position());
        (void)in_.c_string();
        return text;
    }

    bool add_directory(Bytes name) {
        if (!budget_.take(sizeof(Bytes))) return false;
        program_->directories.push_back(name);
        return true;
    }
    bool add_file(LineFile file) {
        if (!budget_.take(sizeof file)) return false;
        program_->files.push_back(file);
        return true;
    }
    // In the format of DWARF 2 to 4. An entry without a name ends the table.
    LineFile read_old_file() {
        LineFile file{read_text(), in_.uleb()};
        (void)in_.uleb();  // time
        (void)in_.uleb();  // size
        return file;
    }

    [[nodiscard]] bool at_zero() const { return in_.remaining() == 0 || unit_[in_.position()] == std::byte{0}; }

    bool read_old_tables() {
        program_->directories.emplace_back();
        program_->files.emplace_back();
        for (; in_.ok() && !at_zero();)
            if (!add_directory(read_text())) return false;
        in_.skip(1);
        for (; in_.ok() && !at_zero();)
            if (!add_file(read_old_file())) return false;
        in_.skip(1);
        return in_.ok();
    }

    // A table whose entries have the fields that a preceding list of (content, form) describes.
    bool read_table(auto add) {
        std::vector<AttributeSpec> fields(in_.number(1));
        for (AttributeSpec& field : fields) {
            field.name = static_cast<std::uint32_t>(in_.uleb());
            field.form = static_cast<std::uint32_t>(in_.uleb());
            field.fixed_size = fixed_form_size(field.form, header_.format);
        }
        const std::uint64_t count = in_.uleb();
        for (std::uint64_t i = 0; i < count && in_.ok(); ++i) {
            LineFile entry;
            if (!budget_.take(fields.size())) return false;
            for (const AttributeSpec& field : fields) read_entry_field(field, entry);
            if (!in_.ok() || !add(entry)) return false;
        }
        return in_.ok();
    }

    void read_entry_field(const AttributeSpec& field, LineFile& entry) {
        if (field.name == DW_LNCT_path && field.form == DW_FORM_string)
            entry.name = read_text();
        else if (field.name == DW_LNCT_path && field.form == DW_FORM_line_strp)
            entry.name = from(sections_.line_strings, in_.number(header_.format.offset_size));
        else if (field.name == DW_LNCT_path && field.form == DW_FORM_strp)
            entry.name = from(sections_.strings, in_.number(header_.format.offset_size));
        else if (field.name == DW_LNCT_directory_index && field.form == DW_FORM_udata)
            entry.directory = in_.uleb();
        else if (field.name == DW_LNCT_directory_index && field.fixed_size > 0 && field.fixed_size <= 8)
            entry.directory = in_.number(static_cast<std::size_t>(field.fixed_size));
        else
            skip_value(in_, field, header_.format);
    }

    bool read_tables() {
        return read_table([this](const LineFile& entry) { return add_directory(entry.name); }) &&
               read_table([this](const LineFile& entry) { return add_file(entry); });
    }

    void advance(std::uint64_t operations) {
        const std::uint64_t index = operation_ + operations;
        address_ += header_.instruction_bytes * (index / header_.operations);
        operation_ = index % header_.operations;
    }

    // Skips rows that equal the previous one, and rows that cover nothing.
    bool add_row(std::uint32_t file) {
        std::vector<LineRow>& rows = program_->rows;
        const bool end = file == LineRow::end_of_sequence;
        const auto line = end ? 0 : static_cast<std::uint32_t>(line_);
        while (rows.size() > sequence_ && rows.back().address == address_) rows.pop_back();
        if (rows.size() > sequence_ && rows.back().address < address_ && rows.back().file == file &&
            rows.back().line == line)
            return true;
        if (rows.size() >= taken_) {
            // This includes the memory for growing the vector.
            const std::size_t more = std::max<std::size_t>(taken_, 64);
            if (!budget_.take(more * sizeof(LineRow))) return false;
            taken_ += more;
            rows.reserve(taken_);
        }
        rows.push_back({address_, file, line});
        return true;
    }

    bool end_sequence() {
        if (!add_row(LineRow::end_of_sequence)) return false;
        sequence_ = program_->rows.size();
        address_ = operation_ = 0;
        line_ = 1;
        file_ = 1;
        return true;
    }

    bool step() {
        const auto opcode = static_cast<std::uint8_t>(in_.number(1));
        if (opcode >= header_.opcode_base) {
            if (header_.line_range == 0) return false;
            const unsigned adjusted = static_cast<unsigned>(opcode) - header_.opcode_base;
            advance(adjusted / header_.line_range);
            line_ += static_cast<std::uint64_t>(std::int64_t{header_.line_base} + adjusted % header_.line_range);
            return add_row(file_);
        }
        if (opcode == 0) return extended();
        const auto operands = std::to_integer<unsigned>(header_.operand_counts[opcode - std::size_t{1}]);
        // If a producer gives a standard opcode other operands, the opcode has another meaning.
        constexpr std::array<unsigned char, DW_LNS_set_isa + 1> usual = {0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
        if (opcode < usual.size() && operands == usual[opcode]) return standard(opcode);
        for (unsigned i = 0; i < operands; ++i) (void)in_.uleb();
        return in_.ok();
    }

    bool standard(std::uint8_t opcode) {
        switch (opcode) {
            case DW_LNS_copy: return add_row(file_);
            case DW_LNS_advance_pc: advance(in_.uleb()); break;
            case DW_LNS_advance_line: line_ += static_cast<std::uint64_t>(in_.sleb()); break;
            case DW_LNS_set_file:
                file_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(in_.uleb(), LineRow::end_of_sequence - 1));
                break;
            case DW_LNS_const_add_pc:
                if (header_.line_range == 0) return false;
                advance((255U - header_.opcode_base) / header_.line_range);
                break;
            case DW_LNS_fixed_advance_pc:
                address_ += in_.number(2);
                operation_ = 0;
                break;
            case DW_LNS_set_column:
            case DW_LNS_set_isa: (void)in_.uleb(); break;
            default:  // flags that are not used
                break;
        }
        return in_.ok();
    }

    bool extended() {
        const std::uint64_t size = in_.uleb();
        if (!in_.ok() || size == 0 || size > in_.remaining()) return false;
        const std::size_t end = in_.position() + static_cast<std::size_t>(size);
        switch (in_.number(1)) {
            case DW_LNE_end_sequence:
                if (!end_sequence()) return false;
                break;
            case DW_LNE_set_address:
                if (size - 1 > 8) return false;
                address_ = in_.number(static_cast<std::size_t>(size - 1));
                operation_ = 0;
                break;
            case DW_LNE_define_file:
                if (!add_file(read_old_file())) return false;
                break;
            default: break;
        }
        in_.seek(end);
        return in_.ok();
    }

    const LineSections& sections_;
    Bytes unit_;
    ByteReader in_;
    IndexBudget& budget_;
    LineProgram* program_ = nullptr;
    Header header_;
    std::size_t sequence_ = 0;  // first row of the sequence that has not ended
    std::size_t taken_ = 0;     // rows that the budget has granted
    // The registers that are used.
    std::uint64_t address_ = 0, operation_ = 0, line_ = 1;
    std::uint32_t file_ = 1;
};

}  // namespace

std::string LineProgram::path(std::uint32_t file, std::string_view compiled_in) const {
    if (file >= files.size()) return {};
    const LineFile& entry = files[file];
    const std::string_view name = text_of(entry.name);
    if (name.empty()) return {};
    const std::string_view directory = entry.directory < directories.size()
                                           ? text_of(directories[static_cast<std::size_t>(entry.directory)])
                                           : std::string_view{};
    std::string path;
    for (const std::string_view part : {compiled_in, directory, name}) {
        if (part.empty()) continue;
        if (part.starts_with('/')) path.clear();
        if (!path.empty() && !path.ends_with('/')) path += '/';
        path += part;
    }
    return path.size() < max_path_bytes ? path : std::string();
}

LineProgram run_line_program(const LineSections& sections, std::uint64_t offset, IndexBudget& budget) {
    LineProgram program;
    if (!LineRun(sections, from(sections.lines, offset), budget).run(program)) return {};
    return program;
}

}  // namespace flamewire::symbol
