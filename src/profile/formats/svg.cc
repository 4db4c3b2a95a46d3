#include "profile/formats/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/utf8.h"
#include "profile/formats/text.h"
#include "profile/query/accumulate.h"
#include "profile/query/query.h"

namespace flamewire::profile {

namespace {

constexpr double row_px = 17;
constexpr double header_px = 34;
constexpr double margin_px = 10;
constexpr double character_px = 7;  // slightly more than an average 12 px sans-serif character, so that text fits
constexpr double text_padding_px = 3;

// One hue per kind, as in the web UI. The name varies the lightness, so that neighbors can be told apart.
std::string colour(const Function& function, std::string_view name) {
    if (is_placeholder(function, name)) return "#fff";
    struct Base {
        int hue, saturation;
    };
    const Base base = [&]() -> Base {
        if (function.kind == group_frame) return {210, 30};
        switch (function.kind) {
            case FrameKind::kernel: return {18, 85};
            case FrameKind::jit: return {170, 50};
            case FrameKind::inlined: return {90, 35};
            case FrameKind::user: return {130, 45};
            case FrameKind::unknown: break;
        }
        return {0, 0};
    }();
    std::uint32_t hash = 2166136261U;  // FNV-1a: the same name has the same color in every image
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    return fmt::format("hsl({},{}%,{}%)", base.hue, base.saturation, 60 + hash % 18);
}

struct Box {
    double x = 0, width = 0;
    std::uint32_t depth = 0;
};

// Places children side by side from the left edge of their parent, in order of weight.
std::vector<Box> place(const CallTree& tree, const Measure& measure, double width_px) {
    std::vector<Box> boxes(tree.nodes.size());
    std::vector<double> next_x(tree.nodes.size());
    const auto all = static_cast<double>(std::max<std::uint64_t>(measure(tree.total), 1));
    boxes[0] = {margin_px, width_px - 2 * margin_px, 0};
    next_x[0] = margin_px;
    for (std::size_t i = 1; i < tree.nodes.size(); ++i) {
        const std::uint32_t parent = tree.nodes[i].parent;
        const double width = boxes[0].width * (static_cast<double>(measure(tree.nodes[i].total)) / all);
        boxes[i] = {next_x[parent], width, boxes[parent].depth + 1};
        next_x[i] = next_x[parent];
        next_x[parent] += width;
    }
    return boxes;
}

std::string label(std::string_view name, double width_px) {
    const double room = (width_px - 2 * text_padding_px) / character_px;
    if (room < 3) return {};
    const auto characters = static_cast<std::size_t>(room);
    const std::string valid = valid_utf8(name);
    if (first_characters(valid, characters).size() == valid.size()) return xml_text(valid);
    return xml_text(first_characters(valid, characters - 2)) + "..";
}

std::string tooltip(const Store& store, const CallTree& tree, const CallTree::Node& node, std::string_view name,
                    const Measure& measure) {
    const Function& function = tree.functions[node.function];
    const auto all = static_cast<double>(std::max<std::uint64_t>(measure(tree.total), 1));
    if (is_placeholder(function, name))
        return fmt::format("{}: callers of these stacks are missing, {} samples, {:.2f}%", name, node.total.samples,
                           100 * static_cast<double>(measure(node.total)) / all);
    std::string text = xml_text(name);
    if (function.module != 0) text += fmt::format(" [{}]", xml_text(store.string(function.module)));
    if (function.kind == FrameKind::inlined) text += " (inlined)";
    return text + fmt::format(", {} samples, {:.2f}%", node.total.samples,
                              100 * static_cast<double>(measure(node.total)) / all);
}

}  // namespace

Result<std::string> svg(const Store& store, const Filter& filter, const SvgOptions& options) {
    const double width_px = std::clamp(options.width_px, 100.0, 100'000.0);
    const GroupedTree grouped =
        grouped_tree(store, filter, options.group, {.min_share = options.least_px / (width_px - 2 * margin_px)});
    const CallTree& tree = grouped.tree;
    const Measure measure(tree.total);
    const std::vector<Box> boxes = place(tree, measure, width_px);
    const std::uint32_t depth = std::ranges::max(boxes, {}, &Box::depth).depth;
    const double height_px = header_px + (depth + 1) * row_px + margin_px;
    std::string out = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" "
        "font-family=\"Verdana, sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        "<text x=\"{2:.1f}\" y=\"22\" text-anchor=\"middle\" font-size=\"15\">{3}</text>\n",
        width_px, height_px, width_px / 2, xml_text(options.title));
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
        const CallTree::Node& node = tree.nodes[i];
        const Box& box = boxes[i];
        const Function& function = tree.functions[node.function];
        const std::string_view name = i == 0 ? "all" : grouped.name(store, function);
        const double y = height_px - margin_px - (box.depth + 1) * row_px;
        fmt::format_to(std::back_inserter(out),
                       "<g><title>{}</title><rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" "
                       "fill=\"{}\"{} rx=\"1\"/>",
                       tooltip(store, tree, node, name, measure), box.x, y, box.width, row_px - 1,
                       colour(function, name),
                       is_placeholder(function, name) ? " stroke=\"#999\" stroke-dasharray=\"3 2\"" : "");
        if (const std::string text = label(name, box.width); !text.empty())
            fmt::format_to(std::back_inserter(out), "<text x=\"{:.2f}\" y=\"{:.1f}\">{}</text>",
                           box.x + text_padding_px, y + row_px - 5, text);
        out += "</g>\n";
        if (out.size() > options.max_bytes) return export_too_large("a picture", options.max_bytes);
    }
    out += "</svg>\n";
    return out;
}

}  // namespace flamewire::profile
