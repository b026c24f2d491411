// A step of an Atari game: repeats an action for several frames and writes the resulting frame.
//
// The emulator is ale-py's Python object, which is called for every frame. The loop is native
// because in Python it would take as long as the image processing.
#pragma once

#include "screen.h"

namespace shoal {

class AtariTurns {
 public:
  /// `emulator`: an ALEInterface. `screens`: an array of three screens. `painter`: a ScreenPainter
  /// or None. `sticky`: None, or a function from an action and its strength to those that are
  /// executed in a frame. `merges`: whether a frame is merged from two screens.
  AtariTurns(nb::handle emulator, nb::handle screens, nb::handle painter, nb::handle sticky,
             int frame_skip, bool merges, bool ends_with_life);

  /// Repeats an action for `frame_skip` frames. Stops early if the game is over, if a life is lost
  /// and `ends_with_life` is set, or after `frames_left` frames. Writes `frame` unless it stopped
  /// early.
  ///
  /// Returns (reward, lives, frames, is_over, life_is_lost, is_painted, is_captured). is_captured:
  /// whether the first of the two screens was read, even if the step then stopped early.
  nb::object play(nb::handle action, nb::handle strength, long lives, int64_t frames_left,
                  nb::handle frame);

  /// The newest screen, the previous one that is merged with it, and the buffer of the next
  /// previous screen. The arrays are owned by this object.
  nb::tuple screens() const;

 private:
  Ref act_, lives_, is_over_, get_screen_, sticky_, painter_owner_;
  ScreenPainter* painter_;
  int frame_skip_;
  bool merges_, ends_with_life_;
  Ref newest_, before_, next_;
};

}  // namespace shoal
