#include "cli/profile_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/decimal.h"
#include "base/utf8.h"
#include "cli/numbers.h"
#include "profile/formats/text.h"
#include "profile/query/accumulate.h"

namespace flamewire::cli {
namespace {

using profile::CallTree;
using profile::Weight;

// Thresholds of perf's colors for shares.
constexpr double hot_percent = 5, warm_percent = 0.5;

std::string percent_cell(std::uint64_t part, std::uint64_t whole, const OutputStyle& style) {
    std::string cell = fmt::format("{:>7}%", percent(part, whole));
    const double share = whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole) * 100;
    if (share >= hot_percent) return style.styled(cell, fmt::fg(fmt::terminal_color::red));
    if (share >= warm_percent) return style.styled(cell, fmt::fg(fmt::terminal_color::green));
    return cell;
}

// Number of UTF-8 bytes of the first `columns` characters.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
    std::size_t at = 0;
    for (; at < text.size(); ++at)
        if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80 && columns-- == 0) break;
    return at;
}

std::string name_cell(const profile::Store& store, const profile::Function& function, std::string_view name,
                      unsigned width, const OutputStyle& style) {
    std::string text = shown_function(name, store.string(function.module), width);
    if (function.kind == profile::group_frame) return style.styled(text, fmt::emphasis::bold);
    switch (function.kind) {
        case profile::FrameKind::kernel: return style.styled(text, fmt::fg(fmt::terminal_color::yellow));
        case profile::FrameKind::unknown: return style.styled(text, fmt::fg(fmt::terminal_color::bright_black));
        case profile::FrameKind::inlined:
            return text + style.styled(" (inlined)", fmt::fg(fmt::terminal_color::bright_black));
        default: return text;
    }
}

struct Limits {
    profile::Measure measure;
    std::uint64_t whole;
    double least;
    Limits(const Weight& total, double percent_limit)
        : measure(total), whole(measure(total)), least(static_cast<double>(whole) * percent_limit / 100) {}
    [[nodiscard]] bool shows(const Weight& weight) const { return static_cast<double>(measure(weight)) >= least; }
};

class TreeText {
public:
    TreeText(const profile::Store& store, const profile::GroupedTree& grouped, const TableOptions& options,
             const OutputStyle& style)
        : store_(store),
          grouped_(grouped),
          tree_(grouped.tree),
          style_(style),
          limits_(tree_.total, options.percent_limit),
          children_(tree_.nodes.size()) {
        for (std::uint32_t node = 1; node < tree_.nodes.size(); ++node)
            if (limits_.shows(tree_.nodes[node].total)) children_[tree_.nodes[node].parent].push_back(node);
    }

    std::string text() && {
        out_ = "   Total     Self  Call tree\n";
        // Depth first without recursion, because stacks are deep.
        std::vector<Step> open;
        push(open, 0, "");
        while (!open.empty()) {
            const Step step = std::move(open.back());
            open.pop_back();
            line(step);
            push(open, step.node, step.below);
        }
        return std::move(out_);
    }

private:
    struct Step {
        std::uint32_t node;
        std::string before, below;  // tree lines left of the name, and left of its callees
    };

    void push(std::vector<Step>& open, std::uint32_t parent, const std::string& lines) {
        const auto& children = children_[parent];
        const bool parts = children.size() > 1;
        for (std::size_t i = children.size(); i-- > 0;) {
            const bool last = i + 1 == children.size();
            if (!parts)
                open.push_back({children[i], lines, lines});
            else if (style_.unicode)
                open.push_back({children[i], lines + (last ? "└ " : "├ "), lines + (last ? "  " : "│ ")});
            else
                open.push_back({children[i], lines + (last ? "` " : "+ "), lines + (last ? "  " : "| ")});
        }
    }

    void line(const Step& step) {
        const CallTree::Node& node = tree_.nodes[step.node];
        out_ += percent_cell(limits_.measure(node.total), limits_.whole, style_);
        out_ += ' ';
        out_ += percent_cell(limits_.measure(node.self), limits_.whole, style_);
        out_ += "  ";
        out_ += style_.styled(step.before, fmt::fg(fmt::terminal_color::bright_black));
        constexpr unsigned left = 19, least = 20;
        const auto indented = left + static_cast<unsigned>(width_of(step.before));
        const unsigned width = style_.columns == 0                 ? 0
                               : style_.columns > indented + least ? style_.columns - indented
                                                                   : least;
        out_ += name_cell(store_, tree_.functions[node.function], grouped_.name(store_, tree_.functions[node.function]),
                          width, style_);
        out_ += '\n';
    }

    const profile::Store& store_;
    const profile::GroupedTree& grouped_;
    const CallTree& tree_;
    const OutputStyle& style_;
    const Limits limits_;
    std::vector<std::vector<std::uint32_t>> children_;
    std::string out_;
};

std::string local_time(std::int64_t realtime_ns) {
    const std::time_t seconds = realtime_ns / 1'000'000'000;
    std::tm local{};
    localtime_r(&seconds, &local);
    return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

std::string loss_text(const server::LossInfo& loss) {
    struct Text {
        std::string_view reason, what, cause, remedy;
    };
    constexpr std::string_view slower = "record at a lower frequency";
    static constexpr Text texts[] = {
        {"ring_full", "samples lost", "the kernel's buffer was full",
         "record at a lower frequency, or give the agent more --ring-pages"},
        {"throttled", "pauses of sampling", "the kernel limits how much CPU time it may take", slower},
        {"spool_full", "samples lost", "the server was away for longer than the agent could keep them",
         "give the agent a larger --spool"},
        {"queue_full", "samples lost", "the agent could not process them in time", slower},
        {"stack_truncated", "stacks cut",
         "they are deeper than what was recorded, and [truncated] replaces their outer callers", ""},
        {"maps_lost", "records of mappings lost", "some addresses have no names", slower},
        {"unknown_process", "samples without a process", "it ended before its mappings could be read", ""},
        {"time_coarsened", "samples in wider slices of time", "older ones are merged to save memory", ""},
        {"other_server", "samples missing", "another server has this part of the recording", ""},
        {"batches_missing", "samples missing", "they refer to parts of the recording that are damaged or missing", ""},
        {"thread_state_unknown", "of thread time in an unknown state", "context-switch records were lost",
         "give the agent more --ring-pages"},
        {"memory_limit", "samples dropped from memory", "the limit was reached, and the file still has them",
         "raise --max-samples of flamewire-server"},
        {"unknown", "samples lost", "the reason was not recorded", ""},
    };
    const auto* found = std::ranges::find(texts, loss.reason, &Text::reason);
    const Text& text = found == std::end(texts) ? *std::prev(found) : *found;
    const std::string event = loss.event.empty() ? "" : fmt::format(" ({})", loss.event);
    const std::string count = loss.reason == "thread_state_unknown"
                                  ? human_weight(static_cast<double>(loss.count), "ns")
                                  : with_commas(loss.count);
    std::string lines = fmt::format("# {} {}{}: {}\n", count, text.what, event, text.cause);
    if (!text.remedy.empty()) lines += fmt::format("#   {}\n", text.remedy);
    return lines;
}

}  // namespace

std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string shortened(const std::string& text, std::size_t columns) {
    const std::size_t width = width_of(text);
    if (width <= columns) return text;
    // Both ends of a long name are more useful than its beginning alone.
    const std::size_t head = (columns - 1) / 2, tail = columns - 1 - head;
    return text.substr(0, bytes_of(text, head)) + "…" + text.substr(bytes_of(text, width - tail));
}

std::string shown_function(std::string_view name, std::string_view module, unsigned width) {
    std::string text = printable(name);
    // "[module+0xoffset]" already contains the module.
    const bool names_module = name.starts_with('[') && name.substr(1).starts_with(module);
    std::string where = printable(module);
    if (!where.empty() && !where.starts_with('[')) where = fmt::format("[{}]", where);  // [kernel], [vdso]
    where = where.empty() || names_module ? "" : "  " + where;
    const std::size_t left = width > width_of(where) + 8 ? width - width_of(where) : 8;
    if (width != 0) text = shortened(text, left);
    return text + where;
}

std::string notice_lines(std::span<const wire::Notice> notices) {
    std::string lines;
    for (const wire::Notice& notice : notices) {
        lines += fmt::format("# {}\n", printable(notice.text));
        if (!notice.remedy.empty()) lines += fmt::format("#   {}\n", printable(notice.remedy));
    }
    return lines;
}

std::string session_head(const server::SessionInfo& info) {
    std::string head = fmt::format("# {}", title_of(info));
    for (const auto& [key, value] : info.label.tags) head += fmt::format(" {}={}", key, value);
    if (!info.host.empty()) head += fmt::format(" on {}", info.host);
    if (!info.arch.empty())
        head += fmt::format(" ({}{}{})", info.arch, info.kernel_release.empty() ? "" : ", Linux ", info.kernel_release);
    if (info.started_ns > 0) head += ", " + local_time(info.started_ns);
    if (info.duration_ms > 0) head += fmt::format(", {}", human_weight(info.duration_ms * 1e6, "ns"));
    if (info.frequency_hz != 0) head += fmt::format(", {} Hz", info.frequency_hz);
    head = printable(head) + "\n";
    for (const server::LossInfo& loss : info.losses) head += loss_text(loss);
    return head + notice_lines(info.notices);
}

std::string event_head(const profile::Store& store, const views::View& view) {
    const Weight total = profile::total_of(store, view.filter);
    std::string head = fmt::format("# {}: {} samples", printable(view.event_name), with_commas(total.samples));
    if (total.weight != 0) head += fmt::format(", {}", human_weight(static_cast<double>(total.weight), view.unit));
    const Weight unknown = profile::unresolved(store, view.filter);
    if (unknown.samples != 0) head += fmt::format(", {}% without a name", percent(unknown.samples, total.samples));
    return head + "\n";
}

std::string function_table(const profile::Store& store, const views::View& view,
                           const std::vector<profile::FunctionRow>& rows, const TableOptions& options,
                           const OutputStyle& style) {
    const Limits limits(profile::total_of(store, view.filter), options.percent_limit);
    std::vector<const profile::FunctionRow*> order;
    for (const profile::FunctionRow& row : rows)
        if (limits.shows(options.by_total ? row.total : row.self)) order.push_back(&row);
    if (options.by_total)
        std::ranges::stable_sort(order, std::greater{}, [&](const auto* row) { return limits.measure(row->total); });
    if (options.most_rows != 0 && order.size() > options.most_rows) order.resize(options.most_rows);

    std::string out = "    Self    Total   Samples  Function\n";
    constexpr unsigned left = 29, least = 20;
    const unsigned width = style.columns == 0 ? 0 : style.columns > left + least ? style.columns - left : least;
    for (const profile::FunctionRow* row : order) {
        out += percent_cell(limits.measure(row->self), limits.whole, style);
        out += ' ';
        out += percent_cell(limits.measure(row->total), limits.whole, style);
        out += fmt::format(" {:>9}  ", row->self.samples);
        out += name_cell(store, row->function, store.string(row->function.name), width, style);
        out += '\n';
    }
    if (order.size() < rows.size())
        out += fmt::format("# and {} more functions\n", with_commas(rows.size() - order.size()));
    return out;
}

std::string call_tree_text(const profile::Store& store, const profile::GroupedTree& tree, const TableOptions& options,
                           const OutputStyle& style) {
    return TreeText(store, tree, options, style).text();
}

}  // namespace flamewire::cli
