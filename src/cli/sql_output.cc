#include "cli/sql_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/hex.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "cli/profile_text.h"
#include "profile/formats/csv.h"

namespace flamewire::cli {
namespace {

using views::sql::Blob;
using views::sql::Cell;
using Cells = std::span<const Cell>;

// As SQLite reads it: with a point or an exponent, and infinity as a number that is too large.
std::string real_text(double number) {
    if (std::isinf(number)) return number < 0 ? "-9e999" : "9e999";
    std::string text = fmt::format("{}", number);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string blob_text(const Blob& blob) { return fmt::format("X'{}'", to_hex(blob.bytes)); }

bool is_number(const Cell& cell) {
    return std::holds_alternative<std::int64_t>(cell) || std::holds_alternative<double>(cell);
}

std::string number_text(const Cell& cell) {
    if (const auto* number = std::get_if<std::int64_t>(&cell)) return std::to_string(*number);
    return real_text(std::get<double>(cell));
}

// Buffers the first rows for the widths of the columns.
class TableResults {
public:
    TableResults(PagedText& text, const OutputStyle& style) : text_(text), style_(style) {}

    void begin(std::span<const std::string> names) {
        if (std::exchange(any_, true)) text_.put("\n");
        names_.clear();
        for (const std::string& name : names) names_.push_back(printable(name));
        rows_.clear();
        right_.assign(names.size(), true);
        laid_out_ = false;
    }

    bool row(Cells cells) {
        std::vector<std::string> texts;
        texts.reserve(cells.size());
        for (std::size_t i = 0; i < cells.size(); ++i) {
            texts.push_back(text_of(cells[i]));
            if (!laid_out_ && !is_number(cells[i]) && !std::holds_alternative<std::monostate>(cells[i]))
                right_[i] = false;
        }
        if (laid_out_) return put_line(texts, false);
        rows_.push_back(std::move(texts));
        return rows_.size() < most_buffered || lay_out();
    }

    void end() {
        const bool none = !laid_out_ && rows_.empty();
        if (!laid_out_) lay_out();
        if (none) text_.put("# no rows\n");
    }
    void finish() {}

private:
    static constexpr std::size_t most_buffered = 1000, gap = 2, least_width = 8;

    static std::string text_of(const Cell& cell) {
        if (is_number(cell)) return number_text(cell);
        if (const auto* text = std::get_if<std::string_view>(&cell)) return printable(*text);
        if (const auto* blob = std::get_if<Blob>(&cell)) return blob_text(*blob);
        return "NULL";
    }

    // Narrows the widest columns of text until all fit the terminal, if possible.
    void fit() {
        std::size_t whole = gap * (widths_.empty() ? 0 : widths_.size() - 1);
        for (const std::size_t width : widths_) whole += width;
        while (style_.columns != 0 && whole > style_.columns) {
            std::size_t* widest = nullptr;
            for (std::size_t i = 0; i < widths_.size(); ++i)
                if (!right_[i] && widths_[i] > least_width && (widest == nullptr || widths_[i] > *widest))
                    widest = &widths_[i];
            if (widest == nullptr) return;
            --*widest;
            --whole;
        }
    }

    bool lay_out() {
        laid_out_ = true;
        widths_.clear();
        for (std::size_t i = 0; i < names_.size(); ++i) {
            std::size_t width = width_of(names_[i]);
            for (const auto& texts : rows_) width = std::max(width, width_of(texts[i]));
            widths_.push_back(width);
        }
        fit();
        bool wanted = put_line(names_, true);
        for (const auto& texts : rows_) wanted = wanted && put_line(texts, false);
        rows_.clear();
        return wanted;
    }

    bool put_line(const std::vector<std::string>& texts, bool header) {
        std::string line;
        for (std::size_t i = 0; i < texts.size(); ++i) {
            const std::string text = right_[i] ? texts[i] : shortened(texts[i], widths_[i]);
            const std::size_t width = width_of(text);
            const std::string pad(widths_[i] > width ? widths_[i] - width : 0, ' ');
            if (i != 0) line.append(gap, ' ');
            if (right_[i]) line += pad;
            line += text;
            if (!right_[i] && i + 1 < texts.size()) line += pad;
        }
        return text_.put((header ? style_.styled(line, fmt::emphasis::bold) : line) + "\n");
    }

    PagedText& text_;
    OutputStyle style_;
    bool any_ = false, laid_out_ = false;
    std::vector<std::string> names_;
    std::vector<std::vector<std::string>> rows_;
    std::vector<bool> right_;  // aligned: a column of numbers
    std::vector<std::size_t> widths_;
};

// {"results":[{"columns":[…],"rows":[[…],…]},…]}, one row a line.
class JsonResults {
public:
    explicit JsonResults(PagedText& text) : text_(text) {}

    void begin(std::span<const std::string> names) {
        JsonWriter json;
        json.array();
        for (const std::string& name : names) json.text(name);
        json.end_array();
        text_.put(fmt::format("{}{{\"columns\":{},\"rows\":[", std::exchange(any_, true) ? "," : "{\"results\":[",
                              json.take()));
        first_ = true;
    }
    bool row(Cells cells) {
        JsonWriter json;
        json.array();
        for (const Cell& cell : cells) put(json, cell);
        json.end_array();
        return text_.put((std::exchange(first_, false) ? "\n" : ",\n") + json.take());
    }
    void end() { text_.put("]}"); }
    void finish() { text_.put(any_ ? "]}\n" : "{\"results\":[]}\n"); }

private:
    static void put(JsonWriter& json, const Cell& cell) {
        if (const auto* text = std::get_if<std::string_view>(&cell))
            json.text(*text);
        else if (const auto* blob = std::get_if<Blob>(&cell))
            json.text(blob_text(*blob));
        else if (is_number(cell))
            json.raw(number_text(cell));
        else
            json.null();
    }

    PagedText& text_;
    bool any_ = false, first_ = true;
};

class CsvResults {
public:
    explicit CsvResults(PagedText& text) : text_(text) {}

    void begin(std::span<const std::string> names) {
        std::string line = std::exchange(any_, true) ? "\r\n" : "";
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (i != 0) line += ',';
            profile::append_csv_field(line, names[i]);
        }
        text_.put(line + "\r\n");
    }
    bool row(Cells cells) {
        std::string line;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (i != 0) line += ',';
            if (const auto* text = std::get_if<std::string_view>(&cells[i]))
                profile::append_csv_field(line, *text);
            else if (const auto* blob = std::get_if<Blob>(&cells[i]))
                line += blob_text(*blob);
            else if (is_number(cells[i]))
                line += number_text(cells[i]);
        }
        return text_.put(line + "\r\n");
    }
    void end() {}
    void finish() {}

private:
    PagedText& text_;
    bool any_ = false;
};

template <class Results>
SqlOutput output_of(std::shared_ptr<Results> results) {
    return {.sink = {.begin = [results](std::span<const std::string> names) { results->begin(names); },
                     .row = [results](Cells cells) { return results->row(cells); },
                     .end = [results] { results->end(); }},
            .finish = [results] { results->finish(); }};
}

}  // namespace

bool PagedText::put(std::string_view text) {
    constexpr std::size_t block = std::size_t{1} << 16, most_paged = std::size_t{4} << 20;
    if (closed_) return false;
    waiting_ += text;
    if (waiting_.size() < (paged_ ? most_paged : block)) return true;
    paged_ = false;
    write();
    return !closed_;
}

void PagedText::write() {
    const auto written = write_all(STDOUT_FILENO, as_bytes_view(waiting_));
    waiting_.clear();
    if (written) return;
    closed_ = true;
    if (written.error().errno_value != EPIPE) state_ = std::unexpected(written.error());
}

Result<int> PagedText::finish() {
    if (paged_) return print_paged(std::exchange(waiting_, {}), options_);
    if (!closed_) write();
    return state_;
}

SqlOutput sql_output(SqlFormat format, PagedText& text, const OutputStyle& style) {
    if (format == SqlFormat::json) return output_of(std::make_shared<JsonResults>(text));
    if (format == SqlFormat::csv) return output_of(std::make_shared<CsvResults>(text));
    return output_of(std::make_shared<TableResults>(text, style));
}

}  // namespace flamewire::cli
