#include "drawing.h"

#include <cmath>

#include "rink.h"
#include "state.h"

namespace shoal::hockey {

namespace {

constexpr uint32_t kIce = 0xffffff, kWalls = 0x000000, kGrey = 0xcccccc, kSand = 0xefcb8a,
                   kNet = 0xc9a562;
constexpr uint32_t kPlayers[2] = {0xeb6235, 0x5d9ec7};
constexpr uint32_t kShades[2] = {0xa8401c, 0x37708f};
constexpr uint32_t kPuck = 0x2b2b2b, kPuckTop = 0x4a4a4a;

constexpr Rotation kUpright{0.0f, 1.0f};

/// Draws in metres on a canvas.
class View {
 public:
  explicit View(shoal_canvas* canvas) : canvas_(canvas), scale_(canvas->width / 10.0) {}

  double x(double metres) const { return canvas_->width / 2.0 + scale_ * metres; }
  double y(double metres) const { return canvas_->height / 2.0 - scale_ * metres; }

  void disc(Vector centre, double radius, uint32_t colour) const {
    canvas_->disc(canvas_, x(centre.x), y(centre.y), scale_ * radius, colour);
  }
  void ring(Vector centre, double radius, double width, uint32_t colour, uint32_t inside) const {
    disc(centre, radius + width / 2.0, colour);
    disc(centre, radius - width / 2.0, inside);
  }
  void line(Vector from, Vector to, double width, uint32_t colour) const {
    canvas_->line(canvas_, x(from.x), y(from.y), x(to.x), y(to.y), scale_ * width, colour);
  }
  /// Draws a polygon scaled about its origin, rotated and moved.
  void polygon(const Polygon& shape, Rotation rotation, Vector origin, float size,
               uint32_t colour) const {
    double points[2 * kLanes];
    for (int k = 0; k < shape.count; ++k) {
      const Vector corner = rotated(rotation, size * shape.corner(k)) + origin;
      points[2 * k] = x(corner.x);
      points[2 * k + 1] = y(corner.y);
    }
    canvas_->polygon(canvas_, points, shape.count, colour);
  }

 private:
  shoal_canvas* canvas_;
  double scale_;
};

void draw_rink(const View& view) {
  constexpr float kLine = 0.05f;
  view.ring({0.0f, 0.0f}, 100.0 / 60, kLine, kGrey, kIce);
  view.line({0.0f, -kHalfHeight}, {0.0f, kHalfHeight}, kLine, kGrey);
  view.disc({0.0f, 0.0f}, 0.1, kGrey);
  for (const Barrier& barrier : kBarriers) {
    if (!barrier.is_goal) continue;
    const Box& box = barrier.shape.box;
    const bool is_left = box.left < 0.0f;
    view.disc({is_left ? box.right : box.left, 0.0f}, 75.0 / 60, kSand);
    view.polygon(barrier.shape, kUpright, {0.0f, 0.0f}, 1.0f, kSand);
    // Erases what extends behind the goal.
    const float back = is_left ? box.left : box.right;
    const float middle = std::copysign(0.5f * (kGoalBack + kWorldHalfWidth), back);
    view.line({middle, -kWorldHalfHeight}, {middle, kWorldHalfHeight}, kWorldHalfWidth - kGoalBack,
              kIce);
    view.line({back, box.bottom}, {back, box.top}, kLine, kNet);
  }
  for (const Barrier& barrier : kBarriers) {
    if (barrier.is_goal) continue;
    view.polygon(barrier.shape, kUpright, {0.0f, 0.0f}, 1.0f, kWalls);
  }
}

void draw_racket(const View& view, const State& state, int p) {
  const Racket& racket = state.rackets[p];
  const Rotation turned = rotation(racket.angle);
  const Vector origin{racket.x, racket.y};
  view.polygon(kRackets[p], turned, origin, 1.0f, kShades[p]);
  view.polygon(kRackets[p], turned, origin, 0.82f, kPlayers[p]);
  if (state.kept[p] > 0.0f) {
    // The direction of a shot.
    const Vector ahead = sign_of(p) * Vector{turned.cosine, turned.sine};
    view.line(origin + 0.6f * ahead, origin + 1.1f * ahead, 0.04, kPlayers[p]);
  }
}

}  // namespace

void draw(const shoal_slots* slots, shoal_canvas* canvas) {
  const auto& state = *static_cast<const State*>(slots->state);
  const View view(canvas);
  canvas->fill(canvas, kIce);
  draw_rink(view);
  draw_racket(view, state, 0);
  draw_racket(view, state, 1);
  const Vector puck{state.puck_x, state.puck_y};
  view.disc(puck, kPuckRadius, kPuck);
  view.disc(puck, 0.6 * kPuckRadius, kPuckTop);
}

}  // namespace shoal::hockey
