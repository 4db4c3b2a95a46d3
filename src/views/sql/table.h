// How a virtual table is declared: its columns, each with a function that reads one value of a row, and a function that
// opens a scan. SQLite checks every condition again, so a scan may return more rows than the conditions select.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace flamewire::views::sql {

class Context;

// A string_view refers to the store or to static memory, and a string to neither.
using Value = std::variant<std::monostate, std::int64_t, double, std::string_view, std::string>;

// SQLite has no unsigned 64-bit type. A larger value becomes a REAL, which rounds it.
inline Value integer(std::uint64_t number) {
    if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return static_cast<std::int64_t>(number);
    return static_cast<double>(number);
}
inline Value null_if_0(std::uint64_t number) { return number == 0 ? Value() : integer(number); }
inline Value null_if_empty(std::string_view text) { return text.empty() ? Value() : Value(text); }
// As a signed number with the same bits: printf('0x%x', …) shows it unsigned.
inline Value address(std::uint64_t number) { return static_cast<std::int64_t>(number); }

// What a scan can do with conditions on a column, and so how many rows the query planner expects.
enum class Key : std::uint8_t {
    none,   // nothing
    one,    // = finds one row
    few,    // = finds a stack's frames
    many,   // = selects a part of the table
    range,  // so do =, <, <=, >, >= and BETWEEN
};

struct Column {
    const char* name;
    const char* type;  // INTEGER, REAL or TEXT
    const char* unit;  // may be empty
    const char* text;  // one line for people
    Key key = Key::none;
};

// Inclusive.
struct Range {
    std::int64_t low = std::numeric_limits<std::int64_t>::min(), high = std::numeric_limits<std::int64_t>::max();
    [[nodiscard]] bool contains(std::int64_t number) const { return low <= number && number <= high; }
};

// The conditions that a scan may use.
class Scan {
public:
    enum class Comparison : std::uint8_t { equal, less, less_or_equal, greater, greater_or_equal };

    // `column` and the texts of values must stay valid as long as the scan is being opened.
    void add(std::string_view column, Comparison comparison, Value value) {
        conditions_.push_back({column, comparison, std::move(value)});
    }
    // The numbers that the column may have; everything without a condition.
    [[nodiscard]] Range range(std::string_view column) const;
    // The number that the column must have. nullopt: there is no such condition.
    [[nodiscard]] std::optional<std::int64_t> number(std::string_view column) const;
    // The same for a text.
    [[nodiscard]] std::optional<std::string_view> text(std::string_view column) const;

private:
    struct Condition {
        std::string_view column;
        Comparison comparison;
        Value value;
    };
    std::vector<Condition> conditions_;
};

class Cursor {
public:
    Cursor() = default;
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;
    virtual ~Cursor() = default;
    // Moves to the first or the next row. False at the end.
    virtual bool next() = 0;
    // Of the current row.
    [[nodiscard]] virtual Value value(std::size_t column) const = 0;
    // The same in every scan of the table. SQLite recognizes by it a row that it found by several conditions.
    [[nodiscard]] virtual std::int64_t id() const = 0;
};

struct Table {
    std::string_view name, text;
    std::vector<Column> columns;
    std::function<std::size_t(const Context&)> rows;  // about how many, for the query planner
    std::function<std::unique_ptr<Cursor>(Context&, const Scan&)> open;
};

template <class Row>
struct ColumnOf {
    Column about;
    Value (*value)(const Context&, const Row&);
};

// The cursor of a table with this type of row. `next` is called with the row to fill, and returns false at the end.
template <class Row, class Next>
class RowCursor final : public Cursor {
public:
    using Getter = Value (*)(const Context&, const Row&);
    RowCursor(const Context& context, std::shared_ptr<const std::vector<Getter>> getters, Next next)
        : context_(context), getters_(std::move(getters)), next_(std::move(next)) {}
    bool next() override {
        ++count_;
        return next_(row_);
    }
    [[nodiscard]] Value value(std::size_t column) const override { return (*getters_)[column](context_, row_); }
    // Rows of tables whose columns have keys are numbers or have id(). Other tables are always read as a whole.
    [[nodiscard]] std::int64_t id() const override {
        if constexpr (std::is_integral_v<Row>)
            return static_cast<std::int64_t>(row_);
        else if constexpr (requires { row_.id(); })
            return row_.id();
        else
            return count_;
    }

private:
    const Context& context_;
    std::shared_ptr<const std::vector<Getter>> getters_;
    Next next_;
    Row row_{};
    std::int64_t count_ = 0;
};

// `start(context, scan)` returns the function bool(Row&) that a cursor calls for each row.
template <class Row, class Rows, class Start>
Table table(std::string_view name, std::string_view text, Rows rows, Start start,
            const std::vector<ColumnOf<Row>>& columns) {
    using Getter = Value (*)(const Context&, const Row&);
    auto getters = std::make_shared<std::vector<Getter>>();
    Table made{name, text, {}, std::move(rows), {}};
    for (const ColumnOf<Row>& column : columns) {
        made.columns.push_back(column.about);
        getters->push_back(column.value);
    }
    made.open = [start, getters](Context& context, const Scan& scan) -> std::unique_ptr<Cursor> {
        auto next = start(context, scan);
        return std::make_unique<RowCursor<Row, decltype(next)>>(context, getters, std::move(next));
    };
    return made;
}

// Rows [first, end) of a table whose rows are numbers.
inline auto count_up(std::size_t first, std::size_t end) {
    return [at = first, end](std::size_t& row) mutable {
        if (at >= end) return false;
        row = at++;
        return true;
    };
}
// Ids [1, count) of a store's table, or only the one that `column` must have.
inline auto ids(const Scan& scan, std::string_view column, std::size_t count) {
    const std::optional<std::int64_t> only = scan.number(column);
    if (!only) return count_up(1, count);
    if (*only < 1 || static_cast<std::uint64_t>(*only) >= count) return count_up(0, 0);
    return count_up(static_cast<std::size_t>(*only), static_cast<std::size_t>(*only) + 1);
}

}  // namespace flamewire::views::sql
