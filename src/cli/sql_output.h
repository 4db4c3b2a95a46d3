// Prints results of SQL as tables, JSON or CSV while the rows arrive. Memory is bounded: a table takes its widths from
// the first rows, and only a limited amount waits for the pager.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/terminal.h"
#include "views/sql/database.h"

namespace flamewire::cli {

// Standard output. Keeps the text for the pager until it is too much for one.
class PagedText {
public:
    explicit PagedText(const OutputOptions& options) : options_(options), paged_(output_is_terminal()) {}
    // False if the reader has closed its end or writing failed.
    bool put(std::string_view text);
    // Writes the rest. Returns an error of put() too.
    Result<int> finish();
    // The reader wants no more.
    [[nodiscard]] bool closed() const { return closed_; }

private:
    void write();

    const OutputOptions& options_;
    bool paged_, closed_ = false;
    std::string waiting_;
    Result<int> state_ = 0;
};

enum class SqlFormat : std::uint8_t { table, json, csv };

struct SqlOutput {
    views::sql::Sink sink;
    std::function<void()> finish;  // to be called after the last result
};
// Writes to `text`, which must outlive it.
SqlOutput sql_output(SqlFormat format, PagedText& text, const OutputStyle& style);

}  // namespace flamewire::cli
