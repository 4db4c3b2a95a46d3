// The tables' declarations define docs/reference/sql-tables.md. FLAMEWIRE_WRITE_DOCS=1 rewrites the page.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "base/file.h"
#include "views/sql/tables.h"

namespace {

using namespace flamewire;

constexpr auto head = R"(# Tables of flamewire sql

Which tables and columns can a statement of [`flamewire sql`](../profile/sql.md) read? `unit_sql`
makes this page from the declarations in `src/views/sql/`; `FLAMEWIRE_WRITE_DOCS=1
build/bin/unit_sql` rewrites it. `flamewire sql` without a statement prints the same.

Values are NULL where nothing is known. A unit of `unit` means the unit of the event or counter, in
the column `unit`.
)";

TEST_CASE("docs/reference/sql-tables.md lists every table and column") {
    std::string page = head;
    for (const views::sql::Table& table : views::sql::tables()) {
        page += fmt::format("\n## {}\n\n{}.\n\n| column | type | unit | value |\n|---|---|---|---|\n", table.name, [&] {
            std::string text(table.text);
            text[0] = static_cast<char>(text[0] >= 'a' ? text[0] - 'a' + 'A' : text[0]);
            return text;
        }());
        for (const views::sql::Column& column : table.columns)
            page += fmt::format("| `{}` | {} | {} | {} |\n", column.name, *column.type == 0 ? "any" : column.type,
                                column.unit, column.text);
    }
    const std::string path = std::string(PROJECT_DIR) + "/docs/reference/sql-tables.md";
    if (std::getenv("FLAMEWIRE_WRITE_DOCS") != nullptr)
        REQUIRE(replace_file(path, as_bytes_view(page), Durable::no, 0644));
    CHECK(read_file(path, page.size() * 2) == page);
}

}  // namespace
