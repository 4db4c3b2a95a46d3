#include "profile/formats/csv.h"

#include <fmt/format.h>

#include <iterator>

#include "base/utf8.h"
#include "profile/formats/json.h"
#include "profile/formats/text.h"
#include "profile/query/query.h"

namespace flamewire::profile {

void append_csv_field(std::string& out, std::string_view text) {
    std::string valid = printable(text);
    // Spreadsheets interpret such text as a formula unless an apostrophe precedes it.
    if (!valid.empty() && std::string_view("=+-@").contains(valid.front())) valid.insert(0, "'");
    if (valid.find_first_of(",\"") == std::string::npos) {
        out += valid;
        return;
    }
    out += '"';
    for (const char c : valid) {
        if (c == '"') out += '"';
        out += c;
    }
    out += '"';
}

Result<std::string> csv(const Store& store, const Filter& filter, std::size_t max_bytes) {
    std::string out = "function,module,kind,file,line,self samples,self weight,total samples,total weight,unit\r\n";
    const std::string unit =
        filter.event && *filter.event < store.events().size() ? store.events()[*filter.event].unit : std::string();
    for (const FunctionRow& row : functions(store, filter)) {
        append_csv_field(out, store.string(row.function.name));
        out += ',';
        append_csv_field(out, store.string(row.function.module));
        out += ',';
        out += kind_name(row.function.kind);
        out += ',';
        append_csv_field(out, store.string(row.function.file));
        out += ',';
        if (row.function.line != 0) fmt::format_to(std::back_inserter(out), "{}", row.function.line);
        fmt::format_to(std::back_inserter(out), ",{},{},{},{},", row.self.samples, row.self.weight, row.total.samples,
                       row.total.weight);
        append_csv_field(out, unit);
        out += "\r\n";
        if (out.size() > max_bytes) return export_too_large("a table", max_bytes);
    }
    return out;
}

}  // namespace flamewire::profile
