"""Hockey as a Box2D scene driven from Python, the baseline of the hockey kernel.

It has the rink, the drives, the puck and the rewards of the specification in normal mode. Box2D
resolves the contacts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from Box2D import b2CircleShape, b2ContactListener, b2FixtureDef, b2PolygonShape, b2Vec2, b2World

__all__ = ["HockeyScene"]

_STEP = 1 / 50
_CENTRE_X, _CENTRE_Y = 5.0, 4.0
_RACKET = [(-10, 20), (5, 20), (5, -20), (-10, -20), (-18, -10), (-21, 0), (-18, 10)]
_UPPER_LEFT = [(65, 322), (65, 455), (45, 455), (45, 315)]
_VELOCITY_ITERATIONS, _POSITION_ITERATIONS = 180, 60
_WALL, _GOAL_RACKET, _GOAL_PUCK, _RACKET_BIT, _PUCK_BIT = 1, 2, 4, 8, 16
_KEPT, _LIMIT = 15, 250
_TURNED = np.array([-1, -1, 1, -1, -1, 1])

Vector = tuple[float, float]


def _mirrored(corners: Sequence[Vector], *, x: bool = False, y: bool = False) -> list[Vector]:
    return [(600 - px if x else px, 480 - py if y else py) for px, py in corners]


class _Contacts(b2ContactListener):  # type: ignore[misc] # Box2D has no types
    """Records goals and contacts between the puck and a racket."""

    def __init__(self, scene: HockeyScene) -> None:
        super().__init__()
        self._scene = scene

    def BeginContact(self, contact: Any) -> None:  # noqa: N802
        """Called by Box2D."""
        bodies = {contact.fixtureA.body, contact.fixtureB.body}
        scene = self._scene
        if scene.puck not in bodies:
            return
        for k, sign in enumerate((1, -1)):
            if scene.goals[k] in bodies:
                scene.winner = -sign
            away = scene.puck.linearVelocity.x * sign < 0.1
            if scene.rackets[k] in bodies and away and scene.kept[k] == 0 and scene.keep_mode:
                scene.kept[k] = _KEPT


class HockeyScene:
    """One match.

    Args:
        keep_mode: Whether a racket keeps the puck that it catches.
    """

    def __init__(self, *, keep_mode: bool = True) -> None:
        self.keep_mode = keep_mode
        self.kept = [0, 0]
        self.winner = self.time = 0
        self._starts, self._random = True, np.random.default_rng(0)
        self.contacts = _Contacts(self)
        self.world = b2World(gravity=(0, 0), contactListener=self.contacts)
        top = [(50, 440), (550, 440), (550, 460), (50, 460)]
        walls: list[Sequence[Vector]] = [top, _mirrored(top, y=True)]
        walls += [_mirrored(_UPPER_LEFT, x=x, y=y) for x in (False, True) for y in (False, True)]
        for corners in walls:
            self._static(corners, (_WALL, _RACKET_BIT | _PUCK_BIT, False))
        goal: list[Vector] = [(35, 165), (55, 165), (55, 315), (35, 315)]
        self.goals = [
            self._static(corners, (_GOAL_RACKET, _RACKET_BIT, False), (_GOAL_PUCK, _PUCK_BIT, True))
            for corners in (goal, _mirrored(goal, x=True))
        ]
        self.rackets = [self._racket(2.0, 1), self._racket(8.0, -1)]
        self.puck = self.world.CreateDynamicBody(
            position=(4.0, 4.0),
            fixtures=b2FixtureDef(
                shape=b2CircleShape(radius=13 / 60),
                density=7.0,
                friction=0.1,
                restitution=0.95,
                categoryBits=_PUCK_BIT,
                maskBits=_WALL | _GOAL_PUCK | _RACKET_BIT,
            ),
        )
        self.puck.linearDamping = 0.05

    def _static(self, corners: Sequence[Vector], *kinds: tuple[int, int, bool]) -> Any:
        vertices = [(x / 60, y / 60) for x, y in corners]
        return self.world.CreateStaticBody(
            fixtures=[
                b2FixtureDef(
                    shape=b2PolygonShape(vertices=vertices),
                    friction=0.1,
                    categoryBits=category,
                    maskBits=mask,
                    isSensor=is_sensor,
                )
                for category, mask, is_sensor in kinds
            ]
        )

    def _racket(self, x: float, sign: int) -> Any:
        racket = self.world.CreateDynamicBody(
            position=(x, 4.0),
            fixtures=b2FixtureDef(
                shape=b2PolygonShape(
                    vertices=[(sign * px * 1.2 / 60, py * 1.2 / 60) for px, py in _RACKET]
                ),
                density=200.0 / 1.2,
                friction=1.0,
                categoryBits=_RACKET_BIT,
                maskBits=_WALL | _GOAL_RACKET | _RACKET_BIT | _PUCK_BIT,
            ),
        )
        racket.linearDamping, racket.angularDamping = 5.0, 2.0
        return racket

    def set_state(self, observation: npt.NDArray[Any], spin: float = 0.0) -> None:
        """Set the state from an observation of player 1."""
        for racket, (x, y, angle, vx, vy, w) in zip(
            self.rackets, observation[:12].reshape(2, 6).tolist(), strict=True
        ):
            racket.transform = (x + _CENTRE_X, y + _CENTRE_Y), angle
            racket.linearVelocity, racket.angularVelocity = (vx, vy), w
        x, y, vx, vy, *kept = observation[12:].tolist()
        self.puck.transform = (x + _CENTRE_X, y + _CENTRE_Y), 0.0
        self.puck.linearVelocity, self.puck.angularVelocity = (vx, vy), spin
        self.kept = [int(count) for count in kept]
        self.winner = 0

    def observe(self) -> npt.NDArray[np.float64]:
        """Return the observation of player 1."""
        values: list[float] = []
        for racket in self.rackets:
            position, velocity = racket.position, racket.linearVelocity
            values += [position.x - _CENTRE_X, position.y - _CENTRE_Y, racket.angle]
            values += [velocity.x, velocity.y, racket.angularVelocity]
        position, velocity = self.puck.position, self.puck.linearVelocity
        values += [position.x - _CENTRE_X, position.y - _CENTRE_Y, velocity.x, velocity.y]
        return np.array([*values, *self.kept])

    def observe_turned(self, observation: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the observation of player 2 for an observation of player 1."""
        first, second = observation[:6] * _TURNED, observation[6:12] * _TURNED
        return np.hstack([second, first, -observation[12:16], observation[17:15:-1]])

    def play(self, action: npt.NDArray[Any]) -> tuple[Any, ...]:
        """Step and return the same results as the kernel, for both players."""
        observation = self.step(action)
        self.time += 1
        infos = [self._info(observation, 0), self._info(observation, 1)]
        rewards = [10 * info["winner"] + info["reward_closeness_to_puck"] for info in infos]
        terminated = self.winner != 0
        truncated = not terminated and self.time > _LIMIT
        both = np.stack([observation, self.observe_turned(observation)]).astype(np.float32)
        if terminated or truncated:
            self.reset()
        return both, rewards, terminated, truncated, infos

    def reset(self) -> None:
        """Start a match."""
        side, y = self._random.uniform(1, 2), self._random.uniform(-1, 1)
        state = np.zeros(18)
        state[[0, 6, 12, 13]] = -3, 3, -side if self._starts else side, y
        self.set_state(state)
        self._starts, self.time = not self._starts, 0

    def _info(self, observation: npt.NDArray[np.float64], player: int) -> dict[str, float]:
        sign = 1 if player == 0 else -1
        x, y, vx, _ = observation[12:16]
        closeness = 0.0
        if sign * x < 0 and sign * vx <= 0:
            away = math.hypot(observation[6 * player] - x, observation[6 * player + 1] - y)
            closeness = -away * 30 / (250 / 60 * _LIMIT / 2)
        return {
            "winner": sign * self.winner,
            "reward_closeness_to_puck": closeness,
            "reward_touch_puck": float(self.kept[player] == _KEPT),
            "reward_puck_direction": sign * vx / (_LIMIT * 25),
        }

    def step(self, action: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Let both players act and return the observation of player 1."""
        numbers = np.clip(action, -1, 1).tolist()
        actions = numbers[:4], numbers[4:]
        for racket, sign, (fx, fy, torque, _) in zip(self.rackets, (1, -1), actions, strict=True):
            self._drive(racket, sign, fx, fy)
            self._turn(racket, torque)
        self.puck.linearDamping = 10.0 if self.puck.linearVelocity.length > 25 else 0.05
        if self.keep_mode:
            for k, sign in enumerate((1, -1)):
                if self.kept[k] > 1:
                    self._keep(k, sign, shoots=actions[k][3] > 0.5)
        self.world.Step(_STEP, _VELOCITY_ITERATIONS, _POSITION_ITERATIONS)
        return self.observe()

    def _drive(self, racket: Any, sign: int, fx: float, fy: float) -> None:
        force = b2Vec2(sign * fx * 6000, sign * fy * 6000)
        velocity, mass = racket.linearVelocity, racket.mass
        x = racket.position.x
        if sign * (x - _CENTRE_X) > -0.5:
            force.x = 0.0
            if sign * velocity.x > 0:
                force.x = -2 * velocity.x * mass / _STEP
            force.x += -sign * (x - _CENTRE_X) * velocity.x * mass / _STEP
            racket.linearDamping = 20.0
            self._keep_inside(racket, sign, force)
        elif velocity.length < 10:
            racket.linearDamping = 5.0
            self._keep_inside(racket, sign, force)
        else:
            racket.linearDamping = 20.0
            if (velocity + _STEP * force / mass).length >= velocity.length:
                return
            self._keep_inside(racket, sign, force)
        racket.ApplyForceToCenter(force, True)

    @staticmethod
    def _keep_inside(racket: Any, sign: int, force: b2Vec2) -> None:
        (x, y), velocity = racket.position, racket.linearVelocity
        offset, push = sign * (x - _CENTRE_X), sign * force.x
        if (offset < -3.5 and push < 0) or (offset > 0 and push > 0):
            velocity.x = force.x = 0.0
        if (y > 6.8 and force.y > 0) or (y < 1.2 and force.y < 0):
            velocity.y = force.y = 0.0
        racket.linearVelocity = velocity

    @staticmethod
    def _turn(racket: Any, share: float) -> None:
        angle, spin, mass = racket.angle, racket.angularVelocity, racket.mass
        if abs(angle) > math.pi / 3:
            torque = -0.1 * angle * mass / _STEP
            if angle * spin > 0:
                torque += -0.1 * spin * mass / _STEP
            racket.angularDamping = 10.0
        else:
            torque = 400 * share
            racket.angularDamping = 2.0
        racket.ApplyTorque(torque, True)

    def _keep(self, k: int, sign: int, *, shoots: bool) -> None:
        racket = self.rackets[k]
        self.puck.position = racket.position
        self.puck.linearVelocity = racket.linearVelocity
        self.kept[k] -= 1
        if self.kept[k] == 1 or shoots:
            push = sign * 60 * self.puck.mass / _STEP
            force = push * math.cos(racket.angle), push * math.sin(racket.angle)
            self.puck.ApplyForceToCenter(force, True)
            self.kept[k] = 0
